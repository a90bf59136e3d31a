//! Sums of records.

use std::path::PathBuf;
use std::sync::Arc;

use ctx_eval::{RequestReport, SessionCalibration};
use ctx_session::Agent;

use super::*;
use crate::{CompactionRecord, PrefixBreak, SessionInfo, StoredRecords};

const DAY: i64 = 86_400_000;

fn record(number: u64, day: i64, raw: u32, sent: u32) -> Record {
    Record {
        session: "a".to_owned(),
        number,
        at: Timestamp(day * DAY),
        model: Some("claude-sonnet-4-5".to_owned()),
        window: Tokens(12_000),
        limit: Tokens(8_000),
        raw_tokens: Tokens(raw),
        sent_tokens: Tokens(sent),
        fits: true,
        outcome: RequestOutcome::Ok,
        attempts: 1,
        ..Record::default()
    }
}

fn session(requests: Vec<Record>) -> SessionTrace {
    let info = SessionInfo { client: Some("claude-cli".to_owned()), ..SessionInfo::default() };
    let requests = requests.into_iter().map(Arc::new).collect();
    SessionTrace { info: Arc::new(info), requests }
}

fn report(by: GroupBy, since: Option<Timestamp>, requests: Vec<Record>) -> StatsReport {
    let mut stats = Stats::new(by, since);
    stats.add_trace(&session(requests));
    stats.report()
}

fn total(requests: Vec<Record>) -> Figures {
    report(GroupBy::Day, None, requests).totals.remove(0).figures
}

#[test]
fn requests_are_summed_by_day_and_client() {
    let all =
        || vec![record(0, 0, 9_000, 9_000), record(1, 1, 20_000, 8_000), record(2, 1, 900, 950)];
    let days = report(GroupBy::Day, None, all());
    let keys: Vec<_> = days.rows.iter().map(|row| row.key.as_deref().unwrap()).collect();
    assert_eq!(keys, ["1970-01-01", "1970-01-02"]);
    let saved: Vec<_> = days.rows.iter().map(|row| row.figures.tokens_saved).collect();
    assert_eq!(saved, [0, 11_950]);
    assert_eq!((days.totals.len(), days.totals[0].figures.overflows_avoided), (1, 1));
    let clients = report(GroupBy::Client, None, all());
    assert_eq!((clients.rows.len(), clients.rows[0].key.as_deref()), (1, Some("claude-code")));
    assert_eq!(clients.rows[0].figures, days.totals[0].figures);
    assert_eq!(report(GroupBy::Project, None, all()).rows[0].key, None);
    let recent = report(GroupBy::Day, Some(Timestamp(DAY)), all());
    assert_eq!((recent.rows.len(), recent.totals[0].figures.requests), (1, 2));
}

#[test]
fn the_reported_usage_replaces_the_count() {
    let mut reported = record(0, 0, 20_000, 10_000);
    (reported.prompt_tokens, reported.cached_tokens) = (Some(12_000), Some(3_000));
    let figures = total(vec![reported.clone(), record(1, 0, 5_000, 5_000)]);
    assert_eq!((figures.tokens_before, figures.tokens_after), (29_000, 17_000));
    assert_eq!((figures.reported, figures.requests), (1, 2));
    assert_eq!(figures.cache_hit_rate, Some(0.25));
    // This provider counts only uncached tokens.
    reported.prompt_tokens = Some(40);
    let figures = total(vec![reported]);
    assert_eq!((figures.tokens_after, figures.reported, figures.cache_hit_rate), (10_000, 0, None));
}

#[test]
fn dollars_saved_compare_with_a_full_history_that_is_cached_as_well() {
    let price = |fresh: f64, cached: f64| fresh * 3e-6 + cached * 0.3e-6;
    let mut second = record(1, 0, 100_000, 20_000);
    (second.prompt_tokens, second.cached_tokens) = (Some(20_000), Some(15_000));
    second.unchanged_prefix = Tokens(15_000);
    let saved =
        |second: &Record| total(vec![record(0, 0, 90_000, 90_000), second.clone()]).saved_usd;
    let close = |found: Option<f64>, expected: f64| {
        assert!((found.unwrap() - expected).abs() < 1e-9, "{found:?} {expected}");
    };
    close(saved(&second), price(10_000.0, 90_000.0) - price(5_000.0, 15_000.0));
    // The cache had expired, so the full history would not have been cached either.
    second.cached_tokens = Some(0);
    close(saved(&second), price(100_000.0, 0.0) - price(20_000.0, 0.0));
    // ctx broke the cache; the full history would have kept it.
    second.unchanged_prefix = Tokens(0);
    close(saved(&second), price(10_000.0, 90_000.0) - price(20_000.0, 0.0));
    // The client broke it.
    second.prefix_break = Some(PrefixBreak { cause: BreakCause::Client, tokens: Tokens(80_000) });
    close(saved(&second), price(90_000.0, 10_000.0) - price(20_000.0, 0.0));
    second.model = Some("nobody-knows".to_owned());
    assert_eq!(total(vec![second]).saved_usd, None);
}

#[test]
fn failures_recoveries_expansions_and_compactions_are_counted() {
    let compaction = |undone| CompactionRecord {
        request: 0,
        entry_id: None,
        first_kept_entry_id: "b".into(),
        tokens_before: Tokens(100),
        tokens_after: None,
        summary: String::new(),
        details: None,
        summarised: None,
        undone,
    };
    let mut all =
        vec![record(0, 0, 20_000, 8_000), record(1, 0, 20_000, 8_000), record(2, 0, 9, 9)];
    all[0].attempts = 2;
    all[0].actions.insert("retrieval".to_owned(), 3);
    all[0].compaction = Some(compaction(false));
    (all[1].attempts, all[1].outcome) = (2, RequestOutcome::Refused);
    all[1].compaction = Some(compaction(true));
    let figures = total(all);
    assert_eq!((figures.requests, figures.failed, figures.tokens_saved), (3, 1, 12_000));
    assert_eq!((figures.recoveries, figures.expansions), (Some(1), Some(3)));
    assert_eq!((figures.compactions, figures.facts_kept), (1, None));
}

#[test]
fn replays_are_counted_apart_from_records() {
    let request = RequestReport {
        entry_id: "a".into(),
        timestamp: None,
        recorded_tokens: None,
        cost_recorded_usd: None,
        raw_tokens: Tokens(30_000),
        sent_tokens: Tokens(10_000),
        cached_tokens: Tokens(5_000),
        unchanged_prefix: Tokens(5_000),
        fits: true,
        cost_usd: Some(1.0),
        cost_without_usd: Some(3.0),
        recalled_tokens: Tokens(0),
        trimmed_messages: 0,
        actions: BTreeMap::new(),
    };
    let replay = ReplayReport {
        window: Tokens(20_000),
        requests: vec![request.clone(), RequestReport { timestamp: Some(Timestamp(9)), ..request }],
        ..ReplayReport::default()
    };
    let file = DiscoveredSession {
        path: PathBuf::from("/x.jsonl"),
        agent: Agent::PI,
        session_id: "x".to_owned(),
        project: Some(PathBuf::from("/w")),
        modified: Timestamp(DAY),
        bytes: 1,
    };
    let replayed = |replay: &ReplayReport| {
        let mut stats = Stats::new(GroupBy::Day, None);
        stats.add_trace(&session(vec![record(0, 0, 9_000, 9_000)]));
        stats.add_replay(replay, &file);
        stats.report()
    };
    let report = replayed(&replay);
    let origins: Vec<_> =
        report.totals.iter().map(|row| (row.origin, row.figures.requests)).collect();
    assert_eq!(origins, [(Origin::Measured, 1), (Origin::Simulated, 2)]);
    let figures = &report.totals[1].figures;
    assert_eq!((figures.tokens_saved, figures.saved_usd), (40_000, Some(4.0)));
    assert_eq!((figures.cache_hit_rate, figures.overflows_avoided), (Some(0.5), 2));
    assert_eq!((figures.recoveries, figures.reported, report.rows.len()), (None, 0, 3));

    // The agent compacted too: what it sent is smaller than its full history.
    let mut recorded = replay;
    let first = &mut recorded.requests[0];
    (first.recorded_tokens, first.cost_recorded_usd) = (Some(14_000), Some(1.5));
    let saved = |replay: &ReplayReport| {
        let figures = replayed(replay).totals.remove(1).figures;
        (figures.tokens_saved, figures.saved_usd, figures.overflows_avoided, figures.reported)
    };
    assert_eq!(saved(&recorded), (40_000, Some(4.0), 2, 0));
    recorded.calibration = Some(SessionCalibration {
        constant: 0,
        factor: 1.0,
        requests: 2,
        median_error: 0.0,
        constant_applied: true,
    });
    assert_eq!(saved(&recorded), (24_000, Some(2.5), 1, 1));
}

#[test]
fn damaged_records_are_skipped_and_counted() {
    let home = tempfile::tempdir().unwrap();
    assert!(StoredRecords::read(&home.path().join("none")).unwrap().sessions.is_empty());
    let line =
        |number| serde_json::json!({ "record": record(number, 0, 9_000, 8_000) }).to_string();
    let (first, second) = (line(0), line(1));
    // Without `client` and `project`, as written by earlier versions.
    let info = r#"{"session":{"id":"a","title":"t"}}"#;
    let half = &second[..second.len() / 2];
    let text = format!("{info}\n{first}\nnot JSON\n{{\"later\":1}}\n{second}\n{half}");
    std::fs::write(home.path().join("a.jsonl"), text).unwrap();
    let stored = StoredRecords::read(home.path()).unwrap();
    assert_eq!((stored.sessions.len(), stored.damaged), (1, 3));
    let mut stats = Stats::new(GroupBy::Client, None);
    stored.sessions.iter().for_each(|session| stats.add_trace(session));
    let rows = stats.report().rows;
    assert_eq!((rows[0].key.as_deref(), rows[0].figures.tokens_saved), (None, 2_000));
}
