//! Whole replays of constructed sessions: the counts and the costs.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use ctx_config::Config;
use ctx_core::{Counter, Message, Role, Services, TokenLedger, Tokens, Usage};
use ctx_engine_registry::{BuildContext, Registry};
use ctx_eval::{Baseline, ReplayReport, ReplaySetup, SessionReport, replay};
use ctx_model::Prices;
use ctx_session::{BranchMessage, ReplayMessage};
use ctx_testkit::{Sample, entries};

const WINDOW: Tokens = Tokens(16_000);

/// USD per million tokens of an answer.
const ANSWER_PRICE: f64 = 3.0;

fn run(line: &[ReplayMessage]) -> ReplayReport {
    let registry = Registry::collect().unwrap();
    let (services, config) = (Services::default(), Config::default());
    let context = BuildContext {
        config: &config,
        services: &services,
        window: WINDOW.into(),
        registry: &registry,
    };
    let setup = ReplaySetup {
        ledger: TokenLedger::new(Counter::default(), WINDOW, Tokens(4_000)),
        baseline: Baseline::default(),
        engine: registry.build_engine(None, &context).unwrap(),
        profile: Default::default(),
        model: None,
        prices: Some(Prices {
            input: 1.0,
            output: ANSWER_PRICE,
            cache_read: Some(0.1),
            cache_write: Some(2.0),
        }),
        details: false,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(replay(line, SessionReport::default(), &setup, |_| ())).unwrap()
}

fn line(messages: Vec<Message>) -> Vec<ReplayMessage> {
    let marked = messages.iter().map(|m| m.role == Role::Assistant).collect::<Vec<_>>();
    let items = entries(messages).into_iter().zip(marked);
    let items = items.map(|(entry, request)| BranchMessage { entry, request });
    items.map(|item| ReplayMessage { item, compactions: Vec::new() }).collect()
}

/// A question of this many tokens and its answer, with the usage that the provider reported.
fn exchange(tokens: usize, output: u64) -> Vec<ReplayMessage> {
    let question = Message::text(Role::User, "word".repeat(tokens));
    let mut answer = Message::text(Role::Assistant, "word".repeat(50));
    answer.meta.usage = Some(Usage { output, ..Usage::default() });
    line(vec![question, answer])
}

#[test]
fn a_request_too_short_to_cache_costs_the_plain_price() {
    let cost =
        |tokens| run(&exchange(tokens, 1)).totals.cost_with_usd.unwrap() * 1e6 - ANSWER_PRICE;
    assert!((cost(1_000) - 1_000.0).abs() < 1e-6, "{}", cost(1_000));
    assert!((cost(1_500) - 3_000.0).abs() < 1e-6, "{}", cost(1_500));
}

#[test]
fn an_absurd_reported_size_is_replaced_by_a_count() {
    let cost = |output| run(&exchange(1_500, output)).totals.cost_with_usd.unwrap() * 1e6;
    let written = cost(1) - ANSWER_PRICE;
    for (reported, believed) in
        [(70, 70.0), (10_000_000, 10_000_000.0), (0, 50.0), (10_000_001, 50.0), (u64::MAX, 50.0)]
    {
        let expected = written + believed * ANSWER_PRICE;
        assert!((cost(reported) - expected).abs() < 1e-3, "{reported}: {}", cost(reported));
    }
}

#[test]
fn a_layer_counts_each_message_once_and_runs_are_identical() {
    let sample = Sample::default().messages();
    let count = sample.len() as u32;
    let line = line(sample);
    let report = run(&line);
    assert!(report.totals.overflows_without > 0 && report.totals.overflows_with == 0);
    assert!(report.layers.values().any(|did| did.dropped > 0));
    for (layer, did) in &report.layers {
        assert!(did.dropped <= count && did.replaced <= count, "{layer}: {did:?} of {count}");
    }
    let again = run(&line);
    let json = |report| serde_json::to_string(report).unwrap();
    assert_eq!(json(&report), json(&again));
}
