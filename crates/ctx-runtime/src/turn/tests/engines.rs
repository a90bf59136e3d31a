//! Engines that compact by themselves, or fail to.

use async_trait::async_trait;
use ctx_core::{
    AssembleRequest, Assembled, CompactRequest, CompactResult, Compacted, ContextEngine,
    EngineInfo, Error, ErrorKind, IngestRequest, IngestResult, Result, Role,
};
use ctx_engine_registry::{EngineRegistration, Registry, Slot, inventory};
use ctx_testkit::chat::{ScriptedChat, Step};

use super::*;

/// What it does on a compaction request.
#[derive(Clone, Copy)]
enum Does {
    Compact,
    Decline,
    Fail,
    /// It names an unknown entry as the first kept one.
    Misname,
    /// It returns an empty summary.
    SayNothing,
    /// It names an unknown entry while it assembles.
    MisnameOnTheWay,
}

struct Owner {
    info: EngineInfo,
    does: Does,
}

fn owner(id: &'static str, does: Does) -> Result<Arc<dyn ContextEngine>> {
    let info =
        EngineInfo { id: id.into(), name: id.into(), version: "1".into(), owns_compaction: true };
    Ok(Arc::new(Owner { info, does }))
}

macro_rules! owners {
    ($($id:literal $does:expr;)*) => {$(
        inventory::submit! {
            EngineRegistration {
                slot: Slot::ContextEngine,
                id: $id,
                source: "tests",
                about: "owns compaction",
                build: |_| owner($id, $does),
            }
        }
    )*};
}

owners! {
    "owner-compacts" Does::Compact;
    "owner-declines" Does::Decline;
    "owner-fails" Does::Fail;
    "owner-misnames" Does::Misname;
    "owner-says-nothing" Does::SayNothing;
    "owner-hears" Does::Decline;
    "owner-misnames-on-the-way" Does::MisnameOnTheWay;
    "owner-ends" Does::Decline;
}

/// The ids of engines that were created and disposed of.
static ENDED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// The messages that the engine "owner-hears" received, and whether each was a heartbeat.
static HEARD: Mutex<Vec<(String, bool)>> = Mutex::new(Vec::new());

#[async_trait]
impl ContextEngine for Owner {
    fn info(&self) -> &EngineInfo {
        &self.info
    }

    async fn ingest(&self, request: IngestRequest) -> Result<IngestResult> {
        if self.info.id == "owner-hears" {
            HEARD.lock().unwrap().push((request.message.plain_text(), request.is_heartbeat));
        }
        match request.message.plain_text().contains("indigestible") {
            true => Err(Error::new(ErrorKind::Contract, "that is too much")),
            false => Ok(IngestResult { ingested: true }),
        }
    }

    async fn assemble(&self, request: AssembleRequest) -> Result<Assembled> {
        let mut view = request.view;
        if matches!(self.does, Does::MisnameOnTheWay) && view.used() > ctx_core::Tokens(20_000) {
            // Keeps from the engine's own message on, which no stored message follows.
            let mine = Message::text(Role::User, "a word of the engine's own");
            let mine = Arc::new(ctx_core::Entry::in_memory("mine", mine));
            view.insert(view.len(), mine, "owner", "it likes to")?;
            let mut compacted = misnamed(view.used());
            compacted.first_kept_entry_id = "mine".into();
            view.compact(compacted, "summary", "owner", "it is full")?;
        }
        Ok(Assembled { view, system_prompt_addition: None })
    }

    async fn dispose(&self) -> Result<()> {
        ENDED.lock().unwrap().push(self.info.id.to_string());
        Ok(())
    }

    async fn compact(&self, request: CompactRequest) -> Result<CompactResult> {
        match self.does {
            Does::Misname => Ok(CompactResult {
                ok: true,
                compacted: true,
                reason: None,
                result: Some(misnamed(request.view.used())),
            }),
            Does::Decline | Does::MisnameOnTheWay => Ok(CompactResult::nothing("not in the mood")),
            Does::Fail => Err(Error::new(ErrorKind::Upstream, "the engine is not up to it")),
            Does::Compact | Does::SayNothing => {
                let kept = request.view.nodes().last().map(|node| node.entry().id().clone());
                let summary = match self.does {
                    Does::SayNothing => " \n",
                    _ => "the owner's own summary",
                };
                let compacted = Compacted {
                    summary: summary.into(),
                    first_kept_entry_id: kept.unwrap_or_default(),
                    tokens_before: request.view.used(),
                    tokens_after: None,
                    details: None,
                    staying: Vec::new(),
                    projections: Vec::new(),
                };
                Ok(CompactResult {
                    ok: true,
                    compacted: true,
                    reason: None,
                    result: Some(compacted),
                })
            }
        }
    }
}

fn misnamed(tokens: ctx_core::Tokens) -> Compacted {
    Compacted {
        summary: "what nobody said".into(),
        first_kept_entry_id: "nowhere".into(),
        tokens_before: tokens,
        tokens_after: None,
        details: None,
        staying: Vec::new(),
        projections: Vec::new(),
    }
}

async fn overflown(engine: &'static str) -> (House, TurnOutcome) {
    let model = ScriptedChat::new("script/a", 64_000);
    let house = House::with(model, "{}", |builder| builder.engine(engine));
    for n in 0..12 {
        house.say(&format!("message {n}\n{}", filler(500))).await.unwrap();
    }
    house.model.then(Step::overflow());
    house.model.then(Step::text("here it is"));
    let outcome = house.say("and now?").await.unwrap();
    (house, outcome)
}

#[tokio::test]
async fn an_engine_that_owns_compaction_is_called_first() {
    let (house, outcome) = overflown("owner-compacts").await;
    assert_eq!((outcome.compactions, outcome.answer.as_deref()), (1, Some("here it is")));
    let sent = house.model.requests().last().unwrap().clone();
    assert_eq!(sent.messages[0].role, Role::CompactionSummary);
    assert!(role_and_text(&sent.messages[0]).1.contains("the owner's own summary"));
    let file = std::fs::read_to_string(house.file()).unwrap();
    assert!(file.contains(r#""details":{"engine":"owner-compacts"}"#), "the engine is named");
}

#[tokio::test]
async fn a_host_can_provide_its_own_registry() {
    let unlinked = EngineRegistration {
        slot: Slot::ContextEngine,
        id: "owner-unlinked",
        source: "host",
        about: "is not linked",
        build: |_| owner("owner-unlinked", Does::Decline),
    };
    let config = "{ plugins: { slots: { contextEngine: 'owner-unlinked' } } }";
    let house = House::with(ScriptedChat::new("script/a", 64_000), config, |builder| {
        builder.registry(Registry::from_parts([], [unlinked]).unwrap())
    });
    house.say("hello").await.unwrap();
    let house = House::with(ScriptedChat::new("script/a", 64_000), config, |builder| builder);
    let error = house.say("hello").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("owner-unlinked"), "{error}");
}

#[tokio::test]
async fn engines_know_which_messages_belong_to_a_heartbeat() {
    let model = ScriptedChat::new("script/a", 64_000);
    let house = House::with(model, "{}", |builder| builder.engine("owner-hears"));
    house.say("hello").await.unwrap();
    let beat = Input::heartbeat("/status is no command here");
    house.runtime().turn(&main_key(), beat, &NoTools, &mut NoListener).await.unwrap();
    house.say("and on").await.unwrap();
    let heard = HEARD.lock().unwrap();
    let heard: Vec<_> = heard.iter().map(|(text, beat)| (text.as_str(), *beat)).collect();
    let beat = [("/status is no command here", true), ("answer 2", true)];
    assert_eq!(heard[2..4], beat, "{heard:?}");
    assert!([0, 1, 4, 5].iter().all(|at| !heard[*at].1), "{heard:?}");
}

#[tokio::test]
async fn if_the_owner_does_not_compact_the_default_compactor_does() {
    for (engine, why) in [
        ("owner-declines", "not in the mood"),
        ("owner-fails", "the engine is not up to it"),
        ("owner-misnames", "first kept entry of the compaction is unknown"),
        ("owner-says-nothing", "missing summary"),
    ] {
        let (house, outcome) = overflown(engine).await;
        assert_eq!((outcome.requests, outcome.compactions), (2, 1), "{engine}");
        assert_eq!(outcome.answer.as_deref(), Some("here it is"));
        let notice = &outcome.notices[0];
        assert_eq!(notice.kind, NoticeKind::Compaction);
        assert!(notice.text.contains("default compactor") && notice.text.contains(why));
        let sent = house.model.requests().last().unwrap().clone();
        assert_eq!(sent.messages[0].role, Role::CompactionSummary);
    }
}

#[tokio::test]
async fn a_failed_ingest_causes_a_notice_and_the_turn_is_answered() {
    let model = ScriptedChat::new("script/a", 64_000);
    let house = House::with(model, "{}", |builder| builder.engine("owner-compacts"));
    let outcome = house.say("something indigestible").await.unwrap();
    assert_eq!(outcome.answer.as_deref(), Some("answer 1"));
    assert_eq!(kinds(&outcome), [NoticeKind::Engine]);
    assert_eq!(house.stored().len(), 2);
}

#[tokio::test]
async fn the_default_compactor_replaces_an_invalid_compaction_while_assembling() {
    let model = ScriptedChat::new("script/a", 64_000);
    let house = House::with(model, "{}", |builder| builder.engine("owner-misnames-on-the-way"));
    let mut notices = Vec::new();
    for n in 0..40 {
        let outcome = house.say(&format!("message {n}\n{}", filler(1_500))).await.unwrap();
        notices.extend(outcome.notices);
    }
    assert!(notices.iter().any(|notice| notice.text.contains("default compactor")), "{notices:?}");
    for sent in house.model.requests() {
        assert!(!text_of(&sent).contains("what nobody said"), "requests match the file");
    }
    let said = house.stored();
    assert_eq!(said.iter().filter(|(role, _)| *role == Role::Assistant).count(), 40);
}

fn text_of(request: &ctx_core::ChatRequest) -> String {
    request.messages.iter().map(|message| role_and_text(message).1).collect()
}

#[tokio::test]
async fn an_engine_is_kept_for_other_tools_and_replaced_for_another_model() {
    let ended = || ENDED.lock().unwrap().iter().filter(|id| *id == "owner-ends").count();
    let (_, fallback) = ctx_testkit::chat::shared(ScriptedChat::new("script/b", 64_000));
    let model = ScriptedChat::new("script/a", 64_000);
    let house = House::with(model, "{}", |builder| builder.engine("owner-ends").fallback(fallback));
    house.say("hello").await.unwrap();
    let engine = house.runtime().inner.sessions.engines.of(&main_key()).unwrap();
    house.say_with("hello", &reader(10)).await.unwrap();
    let with_tools = house.runtime().inner.sessions.engines.of(&main_key()).unwrap();
    assert!(Arc::ptr_eq(&engine, &with_tools), "only the size of the tools differs");
    let sent = house.model.requests().last().unwrap().clone();
    assert_eq!((sent.tools.len(), ended()), (1, 0));
    drop((engine, with_tools));
    house.model.then(Step::Fail(Error::new(ErrorKind::Capability, "no such model")));
    let outcome = house.say("hello").await.unwrap();
    assert_eq!((outcome.model.as_deref(), ended()), (Some("script/b"), 1));
    house.runtime().close(&main_key()).await.unwrap();
    assert_eq!(ended(), 2);
}
