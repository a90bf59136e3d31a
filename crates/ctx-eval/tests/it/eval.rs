//! Whole evaluations of constructed sessions, and the figures of their rows.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::sync::Arc;

use ctx_config::{Config, Profile, SystemRules};
use ctx_core::{Counter, Services, TokenLedger, Tokens};
use ctx_engine_registry::{BuildContext, Registry};
use ctx_eval::eval::{
    COMPACT_TO, EngineArm, EvalArm, EvalReport, EvalRow, EvalSetup, PRESETS, Preset, RowKind,
    SessionEval, evaluate,
};
use ctx_eval::{Baseline, RecordedUsage, ReplaySetup, SessionReport, replay};
use ctx_model::Prices;
use ctx_session::{BranchMessage, ReplayMessage, Transcript};
use serde_json::{Value, json};

const WINDOW: Tokens = Tokens(16_000);
const PRICES: Prices =
    Prices { input: 1.0, output: 3.0, cache_read: Some(0.1), cache_write: Some(2.0) };

/// A pi session under construction.
struct Session {
    lines: Vec<String>,
    entries: usize,
}

impl Session {
    fn new() -> Self {
        let header = json!({"type": "session", "version": 3, "id": "s", "timestamp": "2026-01-05T08:00:00.000Z", "cwd": "/w"});
        Self { lines: vec![header.to_string()], entries: 0 }
    }

    /// Adds an entry after the last one, and returns its id.
    fn push(&mut self, mut entry: Value) -> String {
        let id = format!("{:08x}", self.entries);
        entry["id"] = json!(id);
        entry["parentId"] = match self.entries {
            0 => Value::Null,
            n => json!(format!("{:08x}", n - 1)),
        };
        entry["timestamp"] = json!(format!("2026-01-05T{:02}:00:00.000Z", self.entries % 24));
        self.entries += 1;
        self.lines.push(entry.to_string());
        id
    }

    fn say(&mut self, message: impl Into<Value>) -> String {
        self.push(json!({"type": "message", "message": message.into()}))
    }

    fn user(&mut self, text: &str) -> String {
        self.say(json!({"role": "user", "content": text}))
    }

    fn assistant(&mut self, text: &str) -> String {
        self.say(json!({"role": "assistant", "content": [{"type": "text", "text": text}],
            "usage": {"input": 900, "output": 20, "cacheRead": 100, "cacheWrite": 0}, "stopReason": "stop"}))
    }

    /// Adds a call and its result of this many tokens.
    fn tool(&mut self, tokens: usize) {
        let call = format!("call-{}", self.entries);
        self.say(json!({"role": "assistant", "stopReason": "toolUse",
            "content": [{"type": "toolCall", "id": call, "name": "read", "arguments": {"path": "src/lib.rs"}}]}));
        self.say(
            json!({"role": "toolResult", "toolCallId": call, "toolName": "read", "isError": false,
            "content": [{"type": "text", "text": "word".repeat(tokens)}]}),
        );
    }

    fn transcript(&self) -> Transcript {
        Transcript::from_bytes(self.lines.join("\n").into_bytes()).unwrap()
    }
}

/// Twelve turns of four results each, about 50,000 tokens; the first question contains a rule.
fn long() -> Session {
    let mut session = Session::new();
    session.user("Never touch /etc/hosts.bak, and always run `cargo nextest` before a commit.");
    session.assistant("Understood.");
    for turn in 0..12 {
        session.user(&format!("please look at part {turn}"));
        for _ in 0..4 {
            session.tool(1_000);
        }
        session.assistant(&format!("part {turn} is done"));
    }
    session
}

fn engine(profile: Profile) -> EngineArm {
    let registry = Registry::collect().unwrap();
    let (services, config) = (Services::default(), Config::default().with_profile(profile));
    let context = BuildContext {
        config: &config,
        services: &services,
        window: WINDOW.into(),
        registry: &registry,
    };
    let counter = config.section::<SystemRules>().unwrap().counter;
    EngineArm {
        name: profile.name().to_owned(),
        kind: RowKind::Profile,
        engine: registry.build_engine(None, &context).unwrap(),
        ledger: TokenLedger::new(counter, WINDOW, Tokens(4_000)),
    }
}

fn setup() -> EvalSetup {
    EvalSetup {
        session: SessionReport { path: "s.jsonl".to_owned(), ..SessionReport::default() },
        window: WINDOW,
        counter: Counter::default(),
        system: Tokens::ZERO,
        tools: Tokens::ZERO,
        baseline: Baseline::default(),
        model: None,
        prices: Some(PRICES),
        compact_to: COMPACT_TO,
    }
}

fn everything() -> Vec<EvalArm> {
    let mut candidates = vec![EvalArm::FullHistory];
    candidates.extend(Profile::all().map(|profile| EvalArm::Engine(engine(profile))));
    candidates.extend(PRESETS.iter().copied().map(EvalArm::Preset));
    candidates
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn session_of(session: &Session, candidates: &[EvalArm]) -> SessionEval {
    block_on(evaluate(&session.transcript(), candidates, &setup(), |_| ())).unwrap()
}

fn report(session: &Session, candidates: &[EvalArm]) -> EvalReport {
    EvalReport::of(vec![session_of(session, candidates)], &Counter::default(), COMPACT_TO)
}

fn row<'a>(report: &'a EvalReport, kind: RowKind, name: &str) -> &'a EvalRow {
    report.rows.iter().find(|row| row.kind == kind && row.name == name).unwrap()
}

/// A message without a stored compaction before it.
fn unstored(item: BranchMessage) -> ReplayMessage {
    ReplayMessage { item, compactions: Vec::new() }
}

#[test]
fn the_row_of_an_engine_matches_its_replay() {
    let session = long();
    let contender = engine(Profile::find("pi").unwrap());
    let setup = ReplaySetup {
        ledger: TokenLedger::new(Counter::default(), WINDOW, Tokens(4_000)),
        baseline: Baseline::default(),
        engine: contender.engine.clone(),
        profile: Profile::find("pi").unwrap(),
        model: None,
        prices: Some(PRICES),
        details: false,
    };
    let line = session.transcript().main_line().unwrap();
    let line: Vec<_> = line.into_iter().map(unstored).collect();
    let told = SessionReport { path: "s.jsonl".to_owned(), ..SessionReport::default() };
    let replayed = block_on(replay(&line, told, &setup, |_| ())).unwrap().totals;
    let found = report(&session, &[EvalArm::FullHistory, EvalArm::Engine(contender)]);
    let with = row(&found, RowKind::Profile, "pi");
    assert!(with.cuts > 0 && with.wedges == 0, "{with:?}");
    assert_eq!((with.requests, with.sent_tokens), (replayed.requests, replayed.sent_tokens));
    assert!((with.prefix_reuse.unwrap() - replayed.prefix_reuse).abs() < 1e-12);
    assert!((with.cost_usd.unwrap() - replayed.cost_with_usd.unwrap()).abs() < 1e-12);
    let without = row(&found, RowKind::None, "nothing");
    assert_eq!(without.sent_tokens, replayed.raw_tokens);
    assert!((without.cost_usd.unwrap() - replayed.cost_without_usd.unwrap()).abs() < 1e-12);
}

#[test]
fn without_dropping_every_request_over_the_window_is_a_wedge() {
    let session = long();
    let found = report(&session, &[EvalArm::FullHistory]);
    let row = row(&found, RowKind::None, "nothing");
    assert!(row.wedges > 40 && row.wedges < row.requests, "{row:?}");
    assert_eq!((row.cuts, row.calls, row.coverage), (0, 0, None));
    assert!(found.once.is_empty() && found.presets.is_empty());
}

#[test]
fn facts_dropped_without_a_summary_are_missing_and_kept_by_ctx() {
    let candidates = [
        EvalArm::Engine(engine(Profile::default())),
        EvalArm::Preset(Preset::find("truncation").unwrap()),
    ];
    let found = report(&long(), &candidates);
    let ours = row(&found, RowKind::Profile, "openclaw");
    let truncation = row(&found, RowKind::Preset, "truncation");
    assert_eq!((ours.ungrounded, ours.wedges), (0, 0));
    assert!(ours.coverage.unwrap() >= 0.95, "{ours:?}");
    assert!(truncation.coverage.unwrap() < ours.coverage.unwrap(), "{truncation:?}");
    for once in &found.once {
        assert_eq!((once.sessions, once.reached), (1, 1), "{once:?}");
        assert!(once.failed.is_none() && once.facts > 0, "{once:?}");
    }
    let kept = |name: &str| found.once.iter().find(|row| row.name == name).unwrap().coverage;
    assert!(kept("openclaw").unwrap() >= 0.95 && kept("truncation") < kept("openclaw"));
}

#[test]
fn the_same_sessions_give_the_same_report() {
    let write = || serde_json::to_string(&report(&long(), &everything())).unwrap();
    let json = write();
    assert_eq!(json, write());
    let report: Value = serde_json::from_str(&json).unwrap();
    let rows = report["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 1 + Profile::all().count() + PRESETS.len());
    for row in rows {
        assert_eq!(row.get("failed"), None, "{row}");
        for field in [
            "name",
            "kind",
            "requests",
            "sentTokens",
            "prefixReuse",
            "costUsd",
            "compressionRatio",
            "calls",
            "estimateError",
            "coverage",
            "ungrounded",
            "wedges",
        ] {
            assert!(row.get(field).is_some(), "{field} of {row}");
        }
    }
}

#[test]
fn sums_over_sessions_cover_all_requests() {
    let candidates = [EvalArm::FullHistory];
    let (one, two) = (session_of(&long(), &candidates), session_of(&long(), &candidates));
    let (alone, requests) = (one.rows[0].sent_tokens, one.rows[0].requests);
    let both = EvalReport::of(vec![one, two], &Counter::default(), COMPACT_TO);
    assert_eq!(both.rows.len(), 1);
    assert_eq!((both.rows[0].sent_tokens, both.rows[0].requests), (alone * 2, requests * 2));
    assert_eq!(both.sessions.len(), 2);
}

#[test]
fn the_counters_error_is_measured_against_the_providers_figures() {
    let mut session = Session::new();
    session.user(&"word".repeat(750));
    session.assistant("yes");
    let transcript = session.transcript();
    let recorded = RecordedUsage::of(&transcript).unwrap();
    let setup = EvalSetup { baseline: Baseline { recorded, ..Baseline::default() }, ..setup() };
    let found = block_on(evaluate(&transcript, &[EvalArm::FullHistory], &setup, |_| ())).unwrap();
    assert_eq!((found.rows[0].kind, found.rows[0].sent_tokens), (RowKind::Recorded, 1_000));
    // 750 counted, 1,000 reported.
    assert!((found.rows[1].estimate_error.unwrap() - 0.25).abs() < 1e-9);

    let mut session = Session::new();
    session.user("nobody answers");
    let found = report(&session, &everything());
    assert!(found.rows.iter().all(|row| row.requests == 0 && row.estimate_error.is_none()));
}

#[test]
fn the_agents_own_summary_and_ctxs_are_both_judged() {
    let mut session = long();
    let kept = session.user("Please publish the release notes for 4.7.1 next.");
    session.assistant("I will.");
    session.push(json!({"type": "compaction", "firstKeptEntryId": kept, "tokensBefore": 50_000,
        "summary": format!("## Goal\nLook at parts; see src/imagined_module.rs and /etc/hosts.bak. {}", "All is well. ".repeat(30))}));
    session.user("go on");
    session.assistant("done");
    let found = session_of(&session, &[EvalArm::FullHistory]);
    let [summary] = found.recorded.as_slice() else { panic!("{:?}", found.recorded) };
    assert!(summary.facts > 0 && summary.messages > 100, "{summary:?}");
    assert_eq!(summary.recorded.ungrounded, ["src/imagined_module.rs"]);
    assert!(summary.ctx.ungrounded.is_empty(), "{summary:?}");
    assert!(summary.ctx.tokens <= summary.recorded.tokens, "{summary:?}");
    assert!(summary.ctx.in_summary > summary.recorded.in_summary, "{summary:?}");
    let report = EvalReport::of(vec![found], &Counter::default(), COMPACT_TO);
    let recorded: Vec<_> = report.rows.iter().filter(|row| row.kind == RowKind::Recorded).collect();
    let [own, ours] = recorded.as_slice() else { panic!("{recorded:?}") };
    let nothing = row(&report, RowKind::None, "nothing");
    assert_eq!((own.requests, own.cuts, own.calls), (nothing.requests, 1, 1));
    assert!(own.sent_tokens < nothing.sent_tokens && own.ungrounded == 1);
    assert_eq!((ours.calls, ours.ungrounded), (0, 0));
}

#[test]
fn a_failing_engine_has_a_row_with_the_failure() {
    struct Broken(ctx_core::EngineInfo);

    #[async_trait::async_trait]
    impl ctx_core::ContextEngine for Broken {
        fn info(&self) -> &ctx_core::EngineInfo {
            &self.0
        }
        async fn ingest(
            &self,
            _: ctx_core::IngestRequest,
        ) -> ctx_core::Result<ctx_core::IngestResult> {
            Ok(ctx_core::IngestResult::default())
        }
        async fn assemble(
            &self,
            request: ctx_core::AssembleRequest,
        ) -> ctx_core::Result<ctx_core::Assembled> {
            if request.view.len() > 10 {
                return Err(ctx_core::Error::new(ctx_core::ErrorKind::Contract, "lost my way"));
            }
            Ok(ctx_core::Assembled { view: request.view, system_prompt_addition: None })
        }
        async fn compact(
            &self,
            _: ctx_core::CompactRequest,
        ) -> ctx_core::Result<ctx_core::CompactResult> {
            Ok(ctx_core::CompactResult::nothing("no idea how"))
        }
    }

    let info = ctx_core::EngineInfo {
        id: "broken".into(),
        name: "Broken".into(),
        version: "1".into(),
        owns_compaction: true,
    };
    let broken = EngineArm {
        name: "broken".to_owned(),
        kind: RowKind::Engine,
        engine: Arc::new(Broken(info)),
        ..engine(Profile::default())
    };
    let found = report(&long(), &[EvalArm::FullHistory, EvalArm::Engine(broken)]);
    let row = row(&found, RowKind::Engine, "broken");
    assert!(row.failed.as_deref().unwrap().contains("lost my way"));
    assert_eq!(row.requests + row.wedges, found.rows[0].requests);
    assert!(found.once[0].failed.as_deref().unwrap().contains("no idea how"));
}
