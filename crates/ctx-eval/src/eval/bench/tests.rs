//! Tiny made-up sessions whose labels are obvious.

use std::sync::Arc;

use ctx_core::{Block, Counter, Entry, Message, RawJson, Role, Tokens, ToolCall};
use ctx_session::Transcript;
use serde_json::{Value, json};

use super::Share;
use super::arms::Task;
use super::handles::HandleIds;
use super::needed::{HORIZON, horizon, needed};
use super::planted::Planted;
use super::session::{Item, cuts, parts, tail, tokens};
use super::work::{changed_files, open_todos};
use super::*;
use crate::eval::{COMPACT_TO, Preset};
use crate::{Baseline, SessionReport};

/// A session under construction.
#[derive(Default)]
struct Session {
    ids: HandleIds,
    items: Vec<Arc<Item>>,
}

impl Session {
    fn add(&mut self, message: Message, request: bool) {
        let id = format!("{:08x}", self.items.len());
        let entry = Arc::new(Entry::in_memory(id, message));
        let item = Item::of(&entry, request, &Counter::default(), &mut self.ids).unwrap();
        self.items.push(item);
    }

    fn user(mut self, text: &str) -> Self {
        self.add(Message::text(Role::User, text), false);
        self
    }

    fn agent(mut self, text: &str) -> Self {
        self.add(Message::text(Role::Assistant, text), true);
        self
    }

    fn call(mut self, name: &str, arguments: impl Into<Value>, result: &str) -> Self {
        let id = format!("call-{}", self.items.len());
        let call =
            ToolCall::new(id.as_str(), name, RawJson::from_text(arguments.into().to_string()));
        self.add(Message::new(Role::Assistant, vec![Block::ToolCall(call)]), true);
        self.add(Message::tool_result(id.as_str(), result), false);
        self
    }

    /// Returns the needed handles when it is cut after `at` messages, `kept` of which are the tail.
    fn needed(&self, at: usize, kept: usize) -> Vec<(String, bool)> {
        let (before, after) = self.items.split_at(at);
        let (before, tail) = before.split_at(at - kept);
        let named = |handle| self.ids.get(handle).unwrap().text.clone();
        needed(before, tail, horizon(after))
            .iter()
            .map(|it| (named(it.handle), it.strict))
            .collect()
    }
}

fn found(list: &[(&str, bool)]) -> Vec<(String, bool)> {
    list.iter().map(|(name, strict)| ((*name).to_owned(), *strict)).collect()
}

#[test]
fn needed_handles_occur_before_the_cut_and_are_used_after_it() {
    let session = Session::default()
        .user("see src/old.rs and src/kept.rs, and run with --locked")
        .agent("the commit is 1a2b3c4d")
        .user("src/kept.rs, please")
        .agent("I open src/old.rs and src/kept.rs and src/new.rs")
        .call("bash", json!({"command": "cargo test --locked"}), "at 1a2b3c4d")
        .agent("so it is 1a2b3c4d; src/old.rs again");
    // src/kept.rs is in the tail. src/new.rs is new. A result has the commit before the agent.
    let expected = found(&[("src/old.rs", true), ("--locked", true), ("1a2b3c4", false)]);
    assert_eq!(session.needed(3, 1), expected);
    // With no tail, the newest message is lost too.
    assert!(session.needed(3, 0).contains(&("src/kept.rs".to_owned(), true)));
}

#[test]
fn a_handle_that_the_user_says_first_is_loose_and_uses_beyond_the_horizon_do_not_count() {
    let session = Session::default()
        .user("the value is set in config/app.toml and config/db.toml")
        .user("what about config/app.toml?")
        .agent("config/app.toml is fine");
    assert_eq!(session.needed(1, 0), found(&[("config/app.toml", false)]));
    let far = Session::default()
        .user("config/db.toml")
        .agent(&"word ".repeat(HORIZON.0 as usize))
        .agent("config/db.toml");
    assert_eq!(far.needed(1, 0), []);
    let near = Session::default().user("config/db.toml").agent("well").agent("config/db.toml");
    assert_eq!(near.needed(1, 0), found(&[("config/db.toml", true)]));
}

/// Turns of about 1,000 tokens: a call, its result, and an answer.
fn long(turns: usize) -> Session {
    let mut session = Session::default().user("make part_zero work");
    for turn in 0..turns {
        let path = format!("src/part_{turn}.rs");
        session = session
            .call("read", json!({"path": path}), &"some plain text ".repeat(240))
            .agent(&format!("part {turn} is read"));
    }
    session
}

#[test]
fn cuts_and_rounds_are_even_and_end_before_requests() {
    let session = long(40);
    let places = cuts(&session.items, 3);
    assert_eq!(places.len(), 3);
    for &at in &places {
        assert!(session.items[at].request);
        assert!(tokens(&session.items[..at]) >= super::session::LEAST_BEFORE);
        assert!(tokens(&session.items[at..]) >= super::session::LEAST_AFTER);
    }
    assert!(cuts(&long(5).items, 3).is_empty());
    let history = &session.items[..places[2]];
    let ends = parts(history, 4);
    assert_eq!((ends.len(), ends.last()), (4, Some(&history.len())));
    let quarter = tokens(history).get() / 4;
    for (nth, &end) in ends.iter().enumerate() {
        let size = tokens(&history[..end]).get();
        assert!(size.abs_diff(quarter * (nth as u64 + 1)) < 1_500, "{nth}: {size}");
    }
}

#[test]
fn the_tail_is_a_quarter_of_the_budget_and_does_not_begin_with_a_result() {
    let session = long(40);
    for budget in [100, 1_000, 4_100, 8_000, 20_000] {
        let kept = &session.items[tail(&session.items, Tokens(budget))];
        assert!(tokens(kept) <= Tokens(budget).scale(0.25));
        assert!(kept.first().is_none_or(|item| item.message.tool_results().next().is_none()));
    }
    assert!(tail(&session.items, Tokens(8_000)).len() >= 3);
}

#[test]
fn changed_files_and_todos_are_read_from_the_calls_of_several_agents() {
    let patch = "*** Begin Patch\n*** Update File: src/a.py\n+x\n*** Add File: b.py\n*** End Patch";
    let todo = |status: &str, content: &str| json!({"status": status, "content": content});
    let session = Session::default()
        .call("Edit", json!({"file_path": "/w/app/src/lib.rs", "old_string": "see c.rs"}), "ok")
        .call("write", json!({"path": "Makefile", "content": "all:"}), "ok")
        .call("apply_patch", json!({"input": patch}), "ok")
        .call("str_replace_based_edit_tool", json!({"command": "view", "path": "d.rs"}), "")
        .call("Read", json!({"file_path": "e.rs"}), "")
        .call("TodoWrite", json!({"todos": [todo("pending", "old one")]}), "ok")
        .call(
            "TodoWrite",
            json!({"todos": [todo("completed", "One"), todo("pending", "Do  Two")]}),
            "ok",
        );
    let files: Vec<_> = changed_files(&session.items).into_iter().map(|file| file.text).collect();
    assert_eq!(files, ["Makefile", "b.py", "src/a.py", "src/lib.rs"]);
    assert_eq!(open_todos(&session.items), ["Do  Two"]);
    let plan = json!({"plan": [{"step": "ship it", "status": "in_progress"}]});
    assert_eq!(open_todos(&session.call("update_plan", plan, "ok").items), ["ship it"]);
}

fn some_statements() -> Vec<Statement> {
    let lines = [
        json!({"set": "1", "id": "cap", "type": "hard_constraint", "text": "The cap is $300 now.",
            "required": ["cap", "$300"], "superseded": ["$900"], "initial": "The cap is $900."}),
        json!({"set": "1", "id": "a", "type": "fact", "text": "Reads go to host lintel.", "required": ["LINTEL"], "pair": "b"}),
        json!({"set": "1", "id": "b", "type": "fact", "text": "Writes go to host keystone.", "required": ["keystone"], "pair": "a"}),
        json!({"set": "1", "id": "d", "type": "distractor", "text": "Lunch is at the Harbour.", "required": ["harbour"]}),
        json!({"set": "2", "id": "e", "type": "fact", "text": "Port 4711.", "required": ["4711"]}),
    ];
    statements(&lines.map(|line| line.to_string()).join("\n")).unwrap()
}

fn planted<'a>(session: &mut Session, all: &'a [Statement], nth: usize) -> Planted<'a> {
    let counter = Counter::default();
    Planted::of(&session.items, all, nth, &counter, &mut session.ids).unwrap().unwrap()
}

#[test]
fn statements_are_turns_of_the_user_and_updates_come_last() {
    let (all, mut session) = (some_statements(), long(30));
    let made = planted(&mut session, &all, 0);
    let texts: Vec<&str> = made.history.iter().map(|item| item.text.trim()).collect();
    let place = |text: &str| texts.iter().position(|it| *it == text).unwrap();
    let order = [
        "The cap is $900.",
        "Reads go to host lintel.",
        "Writes go to host keystone.",
        "Lunch is at the Harbour.",
        "The cap is $300 now.",
    ]
    .map(place);
    assert!(order.is_sorted(), "{order:?}");
    for at in order {
        assert_eq!(texts[at + 1], "Noted.");
        assert!(made.history[at + 2].message.tool_results().next().is_none(), "no call is open");
    }
    assert_eq!(made.history.len(), session.items.len() + 10);
    assert!(tokens(&made.history[order[4]..]) >= tokens(&session.items).scale(0.15));
    // The next session gets the next set.
    assert!(planted(&mut session, &all, 1).history.iter().any(|it| it.text.trim() == "Port 4711."));
    assert_eq!(planted(&mut session, &all, 2).history.len(), made.history.len());
}

#[test]
fn an_old_value_beside_the_new_one_is_stale_unless_marked_as_old() {
    let (all, mut session) = (some_statements(), long(30));
    let made = planted(&mut session, &all, 0);
    let judge = |text: &str| made.judge(text);
    let whole = judge("cap: $300 (was $900, [e:12]); reads: lintel; writes: Keystone");
    assert_eq!(
        (whole.statements, whole.updates),
        (Share { of: 3, kept: 3 }, Share { of: 1, kept: 1 })
    );
    assert_eq!(
        (whole.pairs, whole.distractors),
        (Share { of: 1, kept: 1 }, Share { of: 1, kept: 0 })
    );
    assert_eq!((whole.stale_beside_new, whole.only_stale), (0, 0));
    assert_eq!(whole.types["fact"], Share { of: 2, kept: 2 });
    assert_eq!(judge("The cap is $900. The cap is $300 now.").stale_beside_new, 1);
    assert_eq!(judge("The cap is $900.").only_stale, 1);
    assert_eq!(judge("a cap of $9000 and $300").stale_beside_new, 0);
    let part = judge("lintel, and lunch at the harbour");
    assert_eq!((part.pairs, part.distractors.kept), (Share { of: 1, kept: 0 }, 1));
    assert_eq!(made.lost("the cap is $300, lintel"), ["Writes go to host keystone."]);
    // The session itself speaks of the old value.
    let mut session = long(30).user("it was $900 last year");
    assert_eq!(planted(&mut session, &all, 0).judge("cap $300, $900").stale_beside_new, 0);
}

#[test]
fn the_built_in_statements_have_enough_updates_in_two_languages() {
    let all = built_in_statements().unwrap();
    assert!(all.iter().filter(|it| it.initial.is_some()).count() >= 36);
    let is_chinese =
        |it: &&Statement| it.text.chars().any(|c| ('\u{4e00}'..='\u{9fff}').contains(&c));
    assert!(all.iter().filter(is_chinese).count() >= 20);
    for it in &all {
        let (text, old) =
            (it.text.to_lowercase(), it.initial.as_deref().unwrap_or("").to_lowercase());
        assert!(it.required.iter().all(|token| text.contains(&token.to_lowercase())), "{it:?}");
        assert!(it.superseded.iter().all(|token| old.contains(&token.to_lowercase())), "{it:?}");
        assert!(!it.superseded.iter().any(|token| text.contains(&token.to_lowercase())), "{it:?}");
        assert_eq!(it.initial.is_some(), !it.superseded.is_empty(), "{it:?}");
        let pair = it.pair.as_ref().map(|id| all.iter().find(|o| o.set == it.set && o.id == *id));
        assert!(
            pair.is_none_or(|pair| pair.is_some_and(|other| other.pair.as_ref() == Some(&it.id)))
        );
    }
    for wrong in
        ["", "{}", "no json", r#"{"set":"1","id":"a","type":"fact","text":"x","required":[]}"#]
    {
        assert!(statements(wrong).is_err(), "{wrong}");
    }
}

fn task<'a>(session: &'a Session, ends: &'a [usize], most: u32) -> Task<'a> {
    let budgets = vec![Tokens(most); ends.len()];
    let (history, ids) = (&session.items[..], &session.ids);
    Task { history, ends, targets: budgets.clone(), budgets, counter: Counter::default(), ids }
}

fn eval() -> EvalSetup {
    EvalSetup {
        session: SessionReport { path: "s".to_owned(), ..SessionReport::default() },
        window: Tokens(200_000),
        counter: Counter::default(),
        system: Tokens::ZERO,
        tools: Tokens::ZERO,
        baseline: Baseline::default(),
        model: None,
        prices: None,
        compact_to: COMPACT_TO,
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

#[test]
fn each_simple_rule_keeps_its_part() {
    let session = long(30).agent("Finally it works.");
    let ends = [session.items.len()];
    let task = task(&session, &ends, 2_000);
    let text = |rule: SimpleRule| {
        let outcome = block_on(BenchArm::Rule(rule).compact(&task, &eval())).unwrap();
        assert!(outcome.request.tokens(&task.counter) <= Tokens(2_000), "{rule:?}");
        outcome.request.text()
    };
    for rule in SimpleRule::ALL {
        assert!(text(rule).contains("Finally it works."), "{rule:?}");
    }
    assert!(!text(SimpleRule::Last).contains("make part_zero"));
    assert!(text(SimpleRule::FirstAndLast).starts_with("make part_zero"));
    assert!(text(SimpleRule::HeadAndTail).starts_with("make part_zero"));
    let log = text(SimpleRule::ToolLog);
    assert!(log.contains(r#"read {"path":"src/part_0.rs"}"#) && !log.contains("part 0 is read"));
    let said = text(SimpleRule::AssistantText);
    assert!(said.contains("part 0 is read") && !said.contains("src/part_0.rs"));
    let names = text(SimpleRule::Identifiers);
    assert!(names.contains("src/part_29.rs") && names.contains("part_zero"));
}

/// Returns the transcript of a session, with a compaction by its agent after `at` messages.
fn transcript(session: &Session, compacted_at: Option<usize>) -> Transcript {
    let mut lines = vec![
        json!({"type": "session", "version": 3, "id": "s", "timestamp": "2026-01-05T08:00:00.000Z", "cwd": "/w"}),
    ];
    let mut push = |mut entry: Value| {
        let nth = lines.len();
        entry["id"] = json!(format!("{nth:08x}"));
        entry["parentId"] = if nth == 1 { Value::Null } else { json!(format!("{:08x}", nth - 1)) };
        entry["timestamp"] = json!("2026-01-05T08:00:00.000Z");
        lines.push(entry);
    };
    for (at, item) in session.items.iter().enumerate() {
        for message in ctx_dialect::pi::write(&item.message) {
            let message: Value = serde_json::from_str(&message).unwrap();
            push(json!({"type": "message", "message": message}));
        }
        if compacted_at == Some(at) {
            push(json!({"type": "compaction", "firstKeptEntryId": format!("{:08x}", at + 1),
                "tokensBefore": 20_000, "summary": format!("Parts are read. {}", "All is well. ".repeat(300))}));
        }
    }
    let text = lines.iter().map(Value::to_string).collect::<Vec<_>>().join("\n");
    Transcript::from_bytes(text.into_bytes()).unwrap()
}

fn run(
    session: &Transcript,
    arms: &[BenchArm],
    statements: Vec<Statement>,
) -> (BenchReport, usize) {
    let plan = BenchPlan { cuts: 2, budgets: vec![0.3, 0.1], rounds: vec![1, 3], statements };
    let session = BenchSession { transcript: session, eval: eval(), number: 0 };
    let (mut exported, mut last) = (0, (0, 0));
    let mut hooks = Hooks {
        progress: &mut |done, all| last = (done, all),
        export: &mut |line| {
            exported += 1;
            assert!(serde_json::to_string(line).is_ok());
            Ok(())
        },
    };
    let session = block_on(bench(&session, arms, &plan, &mut hooks)).unwrap();
    assert!(last.0 <= last.1 && last.1 > 0, "{last:?}");
    (BenchReport::of(vec![session], Vec::new(), &plan, 1), exported)
}

#[test]
fn every_arm_has_figures_and_at_most_the_tokens_of_the_reference() {
    // Each answer names a file that was read ten turns before. Only the history has the name.
    let mut session = Session::default().user("look through the parts");
    for turn in 0..40 {
        let path = format!("src/part_{turn}.rs");
        let back = format!("as in src/part_{}.rs", (turn + 30) % 40);
        let text = "some plain text ".repeat(240);
        session = session.call("write", json!({"path": path}), &text).agent(&back);
    }
    let presets = ["codex", "mask-observations", "tool-markers", "truncation"];
    let presets = presets.map(|name| BenchArm::Preset(Preset::find(name).unwrap()));
    let mut arms = vec![BenchArm::Rule(SimpleRule::Last)];
    arms.extend(presets);
    arms.push(BenchArm::Rule(SimpleRule::Identifiers));
    let (report, exported) = run(&transcript(&session, Some(90)), &arms, some_statements());
    assert_eq!(report.reference, "last n");
    assert_eq!(report.arms.len(), arms.len() + 1);
    for arm in &report.arms[..arms.len()] {
        assert_eq!(arm.cells.len(), 5, "{}", arm.name);
        for cell in &arm.cells {
            let (figures, reference) =
                (&cell.figures, report.arms[0].figures(cell.setting).unwrap());
            assert_eq!(figures.failures, 0, "{figures:?}");
            assert!(figures.tokens <= reference.tokens, "{}: {figures:?}", arm.name);
            assert_eq!(figures.strict.present.of, reference.strict.present.of);
            let planted = if cell.setting.budget.is_some() { 4 } else { 0 };
            assert_eq!(figures.planted.statements.of, planted, "{}", arm.name);
        }
    }
    let (last, names) = (&report.arms[0], report.arms.iter().find(|arm| !arm.compared).unwrap());
    let at = Setting { budget: Some(0.1), rounds: 1 };
    let share = |arm: &ArmReport| arm.figures(at).unwrap().strict.present.share().unwrap();
    assert!(share(names) > share(last), "{} {}", share(names), share(last));
    assert!(report.difference("codex", at, Measure::Strict).is_some());
    let recorded = report.arms.last().unwrap();
    assert_eq!((recorded.name.as_str(), recorded.cells.len()), ("recorded", 1));
    assert_eq!(recorded.cells[0].setting.budget, None);
    assert_eq!(report.worst.len(), 1);
    // Labels of each cut and budget; a request of each arm and setting, with and without statements.
    assert_eq!(exported, 2 * 2 * (1 + 2 * 2 * arms.len()));
}

/// Programs that enter the bench, as scripts of a shell.
#[cfg(unix)]
mod programs {
    use std::cell::RefCell;
    use std::rc::Rc;
    use std::time::Duration;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn program(script: &str, limit: Duration) -> (tempfile::TempDir, BenchArm) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("candidate.sh");
        std::fs::write(&path, script).unwrap();
        let command = format!("sh {}", path.display());
        let program = CandidateProgram::start(&command, limit).unwrap();
        (folder, BenchArm::Candidate(Rc::new(RefCell::new(program))))
    }

    #[test]
    fn a_program_gets_the_messages_since_the_last_tail_and_its_last_summary() {
        let (folder, arm) = program(
            "cd \"$(dirname \"$0\")\"\nn=0\nwhile read -r line; do n=$((n+1)); printf '%s\\n' \"$line\" > in$n\n\
             printf '{\"summary\":\"summary number %s\"}\\n' $n; done\n",
            LONG,
        );
        let session = long(30);
        let ends = parts(&session.items, 3);
        let outcome = block_on(arm.compact(&task(&session, &ends, 4_000), &eval())).unwrap();
        let text = outcome.request.text();
        assert!(text.starts_with("summary number 3") && text.contains("part 29 is read"), "{text}");
        let mut sent = 0;
        for round in 1..=3 {
            let line = std::fs::read_to_string(folder.path().join(format!("in{round}"))).unwrap();
            let line: Value = serde_json::from_str(&line).unwrap();
            let kept = tail(&session.items[..ends[round - 1]], Tokens(4_000));
            let left = 4_000 - tokens(&session.items[kept.clone()]).get();
            assert_eq!(line["budgetTokens"], left);
            let previous = (round > 1).then(|| format!("summary number {}", round - 1));
            assert_eq!(line["previous"], json!(previous));
            let messages = line["messages"].as_array().unwrap();
            assert_eq!(messages.len(), kept.start - sent);
            sent = kept.start;
        }
    }

    #[test]
    fn a_program_without_a_valid_answer_fails_and_gets_no_more_requests() {
        let session = long(2);
        let ends = [session.items.len()];
        let failure = |script: &str| {
            let (_folder, arm) = program(script, LONG);
            let ask = || block_on(arm.compact(&task(&session, &ends, 1_000), &eval())).unwrap_err();
            let (first, second) = (ask().to_string(), ask().to_string());
            assert!(first.contains("the candidate"), "{first}");
            assert!(second.contains(&first), "{second}");
            first
        };
        assert!(failure("exit 3\n").contains("ended without an answer"));
        assert!(failure("read -r line; echo hello\n").contains("answer: hello"));
        assert!(failure("read -r line; echo '{\"text\":1}'\n").contains("summary"));
        for command in ["", "  "] {
            assert!(CandidateProgram::start(command, Duration::ZERO).is_err());
        }
        let missing = CandidateProgram::start("no-such-program-here", Duration::ZERO).unwrap_err();
        assert!(missing.to_string().contains("cannot start the candidate"));
    }

    #[test]
    fn a_program_that_never_answers_runs_into_its_time_limit() {
        // It waits for a line that never comes.
        let (_folder, arm) = program("read -r one; read -r two\n", Duration::from_millis(50));
        let session = long(2);
        let ends = [session.items.len()];
        let error = block_on(arm.compact(&task(&session, &ends, 1_000), &eval())).unwrap_err();
        assert!(error.to_string().contains("did not answer in time"), "{error}");
    }
}
