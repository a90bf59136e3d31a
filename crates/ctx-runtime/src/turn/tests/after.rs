use ctx_core::{Error, ErrorKind, Role, SummaryModels};
use ctx_testkit::chat::{ScriptedChat, Step};
use ctx_testkit::{Reply, ScriptedSummarizer};

use super::*;
use crate::WorkspaceAccess;

const WORKSPACE: &str = r#"{ agents: { defaults: { workspace: "$DIR/work" } } }"#;

fn with_workspace(model: ScriptedChat, more: impl FnOnce(Builder) -> Builder) -> House {
    let house = House::with(model, WORKSPACE, more);
    std::fs::create_dir_all(house.dir().join("work")).unwrap();
    house
}

/// Runs turns until the session has passed its threshold. Returns their outcomes.
async fn until_compacted(house: &House) -> Vec<TurnOutcome> {
    let mut outcomes = Vec::new();
    for n in 0..40 {
        let outcome = house.say(&format!("message {n}\n{}", filler(1_500))).await.unwrap();
        let done = outcome.compactions > 0;
        outcomes.push(outcome);
        if done {
            return outcomes;
        }
    }
    panic!("it was never compacted");
}

#[tokio::test]
async fn a_session_past_its_threshold_is_compacted_after_the_turn() {
    let mut house = House::new(ScriptedChat::new("script/a", 32_000));
    let outcomes = until_compacted(&house).await;
    assert!(outcomes.len() > 5);
    assert!(outcomes.last().unwrap().answer.is_some());
    house.reopened();
    let outcome = house.say("go on").await.unwrap();
    let sent = house.model.requests().last().unwrap().clone();
    assert_eq!(sent.messages[0].role, Role::CompactionSummary);
    assert!(sent.messages.len() < 2 * outcomes.len());
    assert_eq!(outcome.answer.as_deref(), Some(&*format!("answer {}", house.model.asked())));
    let stored = house.stored();
    assert!(
        stored.iter().any(|(_, text)| text.starts_with("message 0")),
        "the file has every message"
    );
}

#[tokio::test]
async fn a_background_compaction_is_applied_at_the_next_turn() {
    // The answers fill the window: the threshold is passed at the end of a turn.
    let model = ScriptedChat::new("script/a", 32_000).always(|_| Step::text(filler(1_500)));
    let house = House::with(model, "{}", |builder| builder.background(true));
    let mut turns = 0;
    while crate::sync::locked(&house.runtime().inner.sessions.background).is_empty() {
        let outcome = house.say(&format!("message {turns}")).await.unwrap();
        assert_eq!(outcome.compactions, 0);
        turns += 1;
        assert!(turns < 40);
    }
    let is_done = || {
        let background = crate::sync::locked(&house.runtime().inner.sessions.background);
        background.values().all(|background| background.is_finished())
    };
    while !is_done() {
        tokio::task::yield_now().await;
    }
    let (outcome, events) = house.events("go on", &NoTools).await;
    assert_eq!(outcome.compactions, 1);
    assert_eq!(events[..2], ["compaction Threshold", "compaction ended true 1"]);
    let sent = house.model.requests().last().unwrap().clone();
    assert_eq!(sent.messages[0].role, Role::CompactionSummary);
    let outcome = house.say("and on").await.unwrap();
    assert_eq!(outcome.compactions, 0, "it is stored once");
}

#[tokio::test]
async fn a_new_message_cancels_an_unfinished_compaction() {
    let model = ScriptedChat::new("script/a", 32_000).always(|_| Step::text(filler(1_500)));
    // The first summary never completes; the summary for the next request does.
    let writer = ScriptedSummarizer::new("writer/a").replies([Reply::Hang]);
    let writer = Arc::new(writer.otherwise(Reply::Faithful));
    let timer = Arc::new(ctx_testkit::VirtualTimer::default());
    let writers = SummaryModels { chain: vec![writer.clone()], timer };
    let house =
        House::with(model, "{}", |builder| builder.background(true).summary_models(writers));
    let mut turns = 0;
    while crate::sync::locked(&house.runtime().inner.sessions.background).is_empty() {
        house.say(&format!("message {turns}")).await.unwrap();
        turns += 1;
        assert!(turns < 40);
    }
    while writer.asked().is_empty() {
        tokio::task::yield_now().await;
    }
    let held = || house.runtime().inner.sessions.held_by_background();
    assert!(held() > 10_000, "its messages are in memory");
    house.model.then(Step::text("here I am"));
    let outcome = house.say("are you there?").await.unwrap();
    assert_eq!(outcome.answer.as_deref(), Some("here I am"));
    assert!(crate::sync::locked(&house.runtime().inner.sessions.background).is_empty());
    assert_eq!(held(), 0);
    assert!(
        outcome.compactions <= 1 && writer.asked().len() > 1,
        "the request waits for a new summary"
    );
}

#[tokio::test]
async fn a_compaction_of_an_outdated_session_is_discarded() {
    let model = ScriptedChat::new("script/a", 32_000).always(|_| Step::text(filler(1_500)));
    let house = House::with(model, "{}", |builder| builder.background(true));
    let background = || crate::sync::locked(&house.runtime().inner.sessions.background);
    let mut turns = 0;
    while background().is_empty() {
        house.say(&format!("message {turns}")).await.unwrap();
        turns += 1;
    }
    while !background().values().all(|background| background.is_finished()) {
        tokio::task::yield_now().await;
    }
    let written = background().drain().next().unwrap();
    house.say("something else meanwhile").await.unwrap();
    background().insert(written.0, written.1);
    let outcome = house.say("go on").await.unwrap();
    let began = outcome.notices.iter().map(|notice| &notice.text).collect::<Vec<_>>();
    assert_eq!(outcome.compactions, 0, "{began:?}");
}

#[tokio::test]
async fn memory_is_flushed_once_per_cycle() {
    let model =
        ScriptedChat::new("script/a", 32_000).always(|request| match request.tools.is_empty() {
            true => Step::text("yes"),
            false => Step::text("NO_REPLY"),
        });
    let house = with_workspace(model, |builder| builder);
    for cycle in 1..=3 {
        until_compacted(&house).await;
        let requests = house.model.requests();
        let flushes = requests.iter().filter(|request| !request.tools.is_empty()).count();
        assert_eq!(flushes, cycle);
    }
}

#[tokio::test]
async fn memory_is_flushed_silently_once_before_a_compaction() {
    let model = ScriptedChat::new("script/a", 32_000).always(|request| {
        let is_flush = request.tools.iter().any(|tool| tool.name == "append_memory");
        let written = request.messages.last().is_some_and(|m| m.role == Role::ToolResult);
        match (is_flush, written) {
            (true, false) => Step::call("append_memory", r#"{"text":"The vault is Gringolet."}"#),
            (true, true) => Step::text("NO_REPLY"),
            (false, _) => Step::text("yes"),
        }
    });
    let house = with_workspace(model, |builder| builder);
    until_compacted(&house).await;
    let requests = house.model.requests();
    let flushes: Vec<_> = requests.iter().filter(|r| !r.tools.is_empty()).collect();
    assert_eq!(flushes.len(), 2, "one call, and one answer to its result");
    assert!(flushes[0].system.as_deref().is_some_and(|system| system.contains("NO_REPLY")));
    let prompt = flushes[0].messages.last().map(|m| role_and_text(m).1).unwrap();
    assert!(prompt.contains("NO_REPLY"), "{prompt}");
    let stored = house.stored();
    assert!(stored.iter().all(|(role, text)| {
        *role != Role::ToolResult && !text.contains("Gringolet") && !text.contains("NO_REPLY")
    }));
    let notes: Vec<_> =
        std::fs::read_dir(house.dir().join("work/memory")).unwrap().map(Result::unwrap).collect();
    assert_eq!(notes.len(), 1);
    let name = notes[0].file_name().into_string().unwrap();
    assert!(name.len() == "2025-12-06.md".len() && name.starts_with("2025-12-0"), "{name}");
    let note = std::fs::read_to_string(notes[0].path()).unwrap();
    assert_eq!(note, "The vault is Gringolet.\n");

    let sessions = house.home().sessions_file(&FileId::main());
    let sessions = ctx_session::SessionStore::at(sessions).load().unwrap();
    let entry = sessions.get(&main_key()).unwrap();
    assert_eq!(entry.memory_flush_compaction_count, Some(0));
    assert!(entry.memory_flush_at.is_some());
}

#[tokio::test]
async fn forgetting_erases_notes_of_a_flush_and_keeps_other_notes() {
    use crate::forget::{ForgetPlan, ForgetRequest, MemoryToErase};
    let model = ScriptedChat::new("script/a", 32_000).always(|request| {
        let is_flush = request.tools.iter().any(|tool| tool.name == "append_memory");
        let written = request.messages.last().is_some_and(|m| m.role == Role::ToolResult);
        match (is_flush, written) {
            (true, false) => {
                Step::call("append_memory", r#"{"text":"Vault: Gringolet.\nPort: 80."}"#)
            }
            (true, true) => Step::text("NO_REPLY"),
            (false, _) => Step::text("yes"),
        }
    });
    let house = with_workspace(model, |builder| builder);
    until_compacted(&house).await;
    let folder = house.dir().join("work/memory");
    let note = std::fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
    let mine = "Mine: a port is a harbour.\n\n";
    std::fs::write(&note, format!("{mine}{}", std::fs::read_to_string(&note).unwrap())).unwrap();
    let (home, id) = (house.home(), house.entry().session_id);
    drop(house.runtime);
    let settings = ctx_memory::MemorySettings::default();
    let memory = ctx_memory::Memory::open(home.memory_dir(&FileId::main()), settings);
    let memories = [MemoryToErase { agent: FileId::main(), memory, facts: None }];
    let forget = |what: ForgetRequest| {
        let planned = ForgetPlan::plan(&home, what, &memories).unwrap();
        let before = std::fs::read_to_string(&note).unwrap();
        assert!(planned.report().unwrap().files.iter().any(|file| file.path == note));
        assert_eq!(std::fs::read_to_string(&note).unwrap(), before, "a report writes nothing");
        planned.execute(Timestamp(0)).unwrap();
        std::fs::read_to_string(&note).unwrap()
    };
    let matching = ForgetRequest { matching: Some("gringolet".into()), ..ForgetRequest::default() };
    assert_eq!(forget(matching), format!("{mine}Port: 80.\n"));
    let whole = ForgetRequest { session: Some(id), ..ForgetRequest::default() };
    assert_eq!(forget(whole).trim_end(), mine.trim_end());
}

#[tokio::test]
async fn memory_is_not_flushed_to_a_read_only_workspace() {
    for access in [WorkspaceAccess::ReadOnly, WorkspaceAccess::None] {
        let model = ScriptedChat::new("script/a", 32_000);
        let house = with_workspace(model, |builder| builder.workspace_access(access));
        is_not_flushed(&house).await;
    }
    for access in ["ro", "none"] {
        let config = WORKSPACE.replacen(
            "agents: { defaults: {",
            &format!("agents: {{ defaults: {{ workspaceAccess: {access:?},"),
            1,
        );
        assert_ne!(config, WORKSPACE);
        let house = House::with(ScriptedChat::new("script/a", 32_000), &config, |builder| builder);
        std::fs::create_dir_all(house.dir().join("work")).unwrap();
        is_not_flushed(&house).await;
    }
}

async fn is_not_flushed(house: &House) {
    until_compacted(house).await;
    assert!(house.model.requests().iter().all(|request| request.tools.is_empty()));
    assert!(!house.dir().join("work/memory").exists());
}

#[tokio::test]
async fn without_a_workspace_one_notice_explains_the_missing_flush() {
    let house = House::new(ScriptedChat::new("script/a", 32_000));
    let mut notices = Vec::new();
    for _ in 0..2 {
        let outcomes = until_compacted(&house).await;
        notices.extend(outcomes.into_iter().flat_map(|outcome| outcome.notices));
    }
    notices.retain(|notice| notice.kind == NoticeKind::Flush);
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert!(notices[0].text.contains("agents.defaults.workspace"), "{notices:?}");
    assert_eq!(house.entry().memory_flush_at, None);
}

#[tokio::test]
async fn an_emergency_is_recorded_as_a_flush_and_the_next_flush_is_due() {
    let model = ScriptedChat::new("script/a", 128_000);
    let house = House::with(model, r#"{ profile: "ponybunny" }"#, |builder| builder);
    for n in 0..12 {
        house.say(&format!("message {n}\n{}", filler(500))).await.unwrap();
    }
    assert_eq!(house.entry().memory_flush_at, None);
    house.model.then(Step::overflow());
    assert_eq!(house.say("and now?").await.unwrap().compactions, 1);
    house.runtime().close(&main_key()).await.unwrap();
    let entry = house.entry();
    assert!(entry.memory_flush_at.is_some());
    assert_ne!(entry.memory_flush_compaction_count, entry.compaction_count);
}

#[tokio::test]
async fn the_first_overflow_is_an_emergency_only_in_some_profiles() {
    for (profile, overflows, is_emergency) in
        [("ponybunny", 1, true), ("openclaw", 1, false), ("openclaw", 2, true)]
    {
        let model = ScriptedChat::new("script/a", 128_000);
        let config = format!("{{ profile: '{profile}' }}");
        let house = House::with(model, &config, |builder| builder);
        for n in 0..12 {
            house.say(&format!("message {n}\n{}", filler(500))).await.unwrap();
        }
        (0..overflows).for_each(|_| house.model.then(Step::overflow()));
        assert_eq!(house.say("and now?").await.unwrap().compactions, overflows);
        house.runtime().close(&main_key()).await.unwrap();
        let flushed = house.entry().memory_flush_at;
        assert_eq!(flushed.is_some(), is_emergency, "{profile}, {overflows}");
    }
}

#[tokio::test]
async fn a_failed_flush_causes_a_notice() {
    let model =
        ScriptedChat::new("script/a", 32_000).always(|request| match request.tools.is_empty() {
            true => Step::text("yes"),
            false => Step::Fail(Error::new(ErrorKind::Upstream, "not today")),
        });
    let house = with_workspace(model, |builder| builder);
    let outcomes = until_compacted(&house).await;
    let notices = outcomes.iter().flat_map(kinds);
    assert_eq!(notices.filter(|kind| *kind == NoticeKind::Flush).count(), 1);
    assert!(outcomes.iter().all(|outcome| outcome.answer.as_deref() == Some("yes")));
}

#[tokio::test]
async fn memory_is_flushed_before_an_overflow_compaction() {
    let model = ScriptedChat::new("script/a", 128_000);
    let house = with_workspace(model, |builder| builder);
    for n in 0..12 {
        house.say(&format!("message {n}\n{}", filler(500))).await.unwrap();
    }
    house.model.then(Step::overflow());
    house.model.then(Step::text("NO_REPLY"));
    let outcome = house.say("and now?").await.unwrap();
    assert_eq!(outcome.compactions, 1);
    let requests = house.model.requests();
    let flush = &requests[requests.len() - 2];
    assert_eq!(flush.tools.len(), 1);
}

fn flushes(house: &House) -> usize {
    let of_flush = |r: &&ctx_core::ChatRequest| r.tools.iter().any(|t| t.name == "append_memory");
    house.model.requests().iter().filter(of_flush).count()
}

#[tokio::test]
async fn memory_is_flushed_before_a_manual_compaction() {
    let model = ScriptedChat::new("script/a", 128_000);
    let mut house = with_workspace(model, |builder| builder);
    // A compaction without effect does not end a cycle.
    house.say("hello").await.unwrap();
    house.model.then(Step::text("NO_REPLY"));
    house.say("/compact").await.unwrap();
    assert_eq!(flushes(&house), 1);
    for n in 0..30 {
        house.say(&format!("message {n}\n{}", filler(1_500))).await.unwrap();
    }
    house.model.then(Step::text("NO_REPLY"));
    let said = house.say("/compact").await.unwrap().answer.unwrap();
    assert!(said.starts_with("**Compact Complete!**\n\n- Messages compacted: "), "{said}");
    assert_eq!(flushes(&house), 2);
    for n in 0..30 {
        house.say(&format!("message {n}\n{}", filler(1_500))).await.unwrap();
    }
    let model = house.model.clone();
    house.open(WORKSPACE, model, |builder| builder);
    house.model.then(Step::text("NO_REPLY"));
    assert!(house.runtime().compact(&main_key(), None).await.unwrap().compacted);
    assert_eq!(flushes(&house), 3);
}

#[tokio::test]
async fn memory_is_flushed_before_a_compaction_between_two_calls() {
    let model = ScriptedChat::new("script/a", 32_000);
    let house = with_workspace(model, |builder| builder);
    for n in 0..10 {
        house.model.then(Step::text(filler(1_500)));
        house.say(&format!("tell me more of {n}")).await.unwrap();
    }
    assert_eq!(flushes(&house), 0);
    house.model.then(reads(0..4));
    house.model.then(Step::text("NO_REPLY"));
    let (outcome, events) = house.events("read them", &reader(6_000)).await;
    assert!(events.contains(&"compaction Threshold".to_owned()), "{events:?}");
    assert_eq!(flushes(&house), 1);
    let requests = house.model.requests();
    let flush =
        requests.iter().find(|request| !request.tools.is_empty() && request.session_id.is_none());
    let messages = flush.unwrap().messages.iter().map(|message| &**message);
    ctx_core::check_pairs(messages).unwrap();
    assert!(outcome.answer.is_some());
}

#[tokio::test]
async fn archiving_cut_short_is_completed_at_the_next_opening() {
    const MEMORY: &str = "{ agents: { defaults: { memoryContext: { enabled: true } } } }";
    let mut house = House::with(ScriptedChat::new("script/a", 100_000), MEMORY, |builder| builder);
    house.say("the vault is called Gringolet").await.unwrap();
    for n in 0..30 {
        house.say(&format!("message {n}\n{}", filler(1_500))).await.unwrap();
    }
    let said = house.say("/compact").await.unwrap().answer.unwrap();
    assert!(said.starts_with("**Compact Complete!**\n\n- Messages compacted: "), "{said}");
    let model = house.model.clone();
    house.runtime = None;
    // As if it had been killed once the compaction was on disk.
    std::fs::remove_dir_all(house.home().memory_dir(&FileId::main())).unwrap();
    house.open(MEMORY, model, |builder| builder);
    let found = house.say("/recall what is the vault called?").await.unwrap().answer.unwrap();
    assert!(found.contains("Gringolet"), "{found}");
}

/// A clock that the test sets. Waiting polls it.
#[derive(Clone, Default)]
struct ByHand(Arc<std::sync::atomic::AtomicU64>);

#[async_trait::async_trait]
impl ctx_core::Timer for ByHand {
    fn elapsed(&self) -> std::time::Duration {
        std::time::Duration::from_secs(self.0.load(Ordering::SeqCst))
    }

    async fn sleep(&self, duration: std::time::Duration) {
        let until = self.elapsed().saturating_add(duration);
        while self.elapsed() < until {
            tokio::task::yield_now().await;
        }
    }
}

/// A model that takes 800 seconds to flush memory, and keeps sending output.
struct Slow(Arc<ScriptedChat>, ByHand);

#[async_trait::async_trait]
impl ChatModel for Slow {
    fn card(&self) -> &ctx_core::ModelCard {
        self.0.card()
    }

    async fn answer(
        &self,
        request: ctx_core::ChatRequest,
        deltas: ctx_core::Deltas<'_>,
    ) -> ctx_core::Result<ctx_core::Reply> {
        for _ in 0..if request.tools.is_empty() { 0 } else { 4 } {
            self.1.0.fetch_add(200, Ordering::SeqCst);
            deltas(ctx_core::Delta::Text("NO_"));
            tokio::task::yield_now().await;
        }
        self.0.answer(request, deltas).await
    }
}

#[tokio::test]
async fn a_flush_continues_while_the_model_sends_output() {
    let mut house = with_workspace(ScriptedChat::new("script/a", 32_000), |builder| builder);
    let clock = ByHand::default();
    let slow = Arc::new(Slow(house.model.clone(), clock.clone()));
    house.open(WORKSPACE, slow, |builder| builder.timer(Arc::new(clock)));
    let outcomes = until_compacted(&house).await;
    assert_eq!(flushes(&house), 1);
    let notices: Vec<_> = outcomes.iter().flat_map(kinds).collect();
    assert!(!notices.contains(&NoticeKind::Flush), "{notices:?}");
}
