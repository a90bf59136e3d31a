//! Compares the manifest of any request of a replay with the manifest that the view returned for
//! that request.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::sync::Arc;

use ctx_config::Config;
use ctx_core::{
    AssembleRequest, ContextEngine, ContextView, Counter, ManifestEntry, Message, NodeState, Role,
    SequentialIds, Services, TokenLedger, Tokens, TurnContext,
};
use ctx_engine_registry::{BuildContext, Registry};
use ctx_eval::{ReplaySetup, SessionReport, manifest_at, replay, request_ends};
use ctx_session::{BranchMessage, ReplayMessage};
use ctx_testkit::{RandomTranscript, Sample, entries};
use serde_json::json;

const WINDOW: Tokens = Tokens(16_000);

fn ledger() -> TokenLedger {
    TokenLedger::new(Counter::default(), WINDOW, Tokens(4_000))
}

fn engine() -> Arc<dyn ContextEngine> {
    let registry = Registry::collect().unwrap();
    let pruning =
        json!({ "agents": { "defaults": { "contextPruning": { "mode": "cache-ttl" } } } });
    let config = Config::default().overlaid(pruning).unwrap();
    let services = Services::default();
    let context = BuildContext {
        config: &config,
        services: &services,
        window: WINDOW.into(),
        registry: &registry,
    };
    registry.build_engine(None, &context).unwrap()
}

fn line(messages: Vec<Message>) -> Vec<ReplayMessage> {
    let marked: Vec<bool> = messages.iter().map(|m| m.role == Role::Assistant).collect();
    let items = entries(messages).into_iter().zip(marked);
    let items = items.map(|(entry, request)| BranchMessage { entry, request });
    items.map(|item| ReplayMessage { item, compactions: Vec::new() }).collect()
}

/// Returns the manifests from the view.
async fn seen(line: &[ReplayMessage]) -> Vec<Vec<ManifestEntry>> {
    let (engine, ids) = (engine(), Arc::new(SequentialIds::default()));
    let mut view = ContextView::new(ledger());
    let (mut seen, mut last_request) = (Vec::new(), None);
    for ReplayMessage { item, .. } in line {
        if item.request {
            let now = item.entry.timestamp();
            let turn = TurnContext {
                last_request,
                ids: ids.clone(),
                ..TurnContext::at(now.or(last_request).unwrap_or_default())
            };
            let request = AssembleRequest { session_id: String::new(), view, turn };
            view = engine.assemble(request).await.unwrap().into_view();
            view.take_compactions();
            view.finish().unwrap();
            seen.push(view.manifest().entries);
            last_request = now.or(last_request);
        }
        view.append(item.entry.clone()).unwrap();
    }
    seen
}

fn sorted(mut entries: Vec<ManifestEntry>) -> Vec<ManifestEntry> {
    entries.sort_by(|a, b| a.entry.cmp(&b.entry));
    entries
}

fn sent(entries: &[ManifestEntry]) -> Vec<&str> {
    entries.iter().filter(|e| e.state != NodeState::Dropped).map(|e| &*e.entry).collect()
}

/// Returns the number of requests, and of entries inserted in them.
fn check(messages: Vec<Message>, in_order: bool) -> (usize, usize) {
    let line = line(messages);
    let setup = ReplaySetup {
        baseline: Default::default(),
        ledger: ledger(),
        engine: engine(),
        profile: Default::default(),
        model: None,
        prices: None,
        details: true,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let report = replay(&line, SessionReport::default(), &setup, |_| ());
    let report = runtime.block_on(report).unwrap();
    let seen = runtime.block_on(seen(&line));
    let ends = request_ends(&line);
    assert_eq!(ends.len(), seen.len());
    let mut added = 0;
    for (at, wanted) in seen.into_iter().enumerate() {
        let counter = Counter::default();
        let found = manifest_at(&line[..ends[at]], &report.details, &counter, at).unwrap();
        added += found.iter().filter(|e| e.state == NodeState::Inserted).count();
        if in_order {
            assert_eq!(sent(&found), sent(&wanted), "request {at}");
        }
        assert_eq!(sorted(found), sorted(wanted), "request {at}");
    }
    (ends.len(), added)
}

#[test]
fn the_edits_of_a_replay_give_the_manifest_of_every_request() {
    let (requests, added) = check(Sample::default().messages(), true);
    assert!(requests > 400 && added > 0, "{requests} requests, {added} added");
}

#[test]
fn the_edits_of_random_replays_give_their_manifests() {
    for seed in 0..ctx_testkit::cases(60).into() {
        let transcript = RandomTranscript::seeded(seed).tokens(Tokens(40_000)).generate();
        check(transcript.messages, false);
    }
}
