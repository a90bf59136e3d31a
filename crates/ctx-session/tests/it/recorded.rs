//! Real transcripts, if available: results must match those that other programs computed.

// Test helpers are test code.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::collections::BTreeMap;

use ctx_core::Counter;
use ctx_session::{EntryKind, Format, ProblemKind, Transcript};
use ctx_testkit::recorded;
use serde_json::Value;

#[test]
fn pi_computes_the_same() {
    let Some(file) = recorded("pi/before-compaction.jsonl") else { return };
    let golden = std::fs::read_to_string(file.with_file_name("golden.json")).unwrap();
    let golden: Value = serde_json::from_str(&golden).unwrap();
    let whole = std::fs::read_to_string(&file).unwrap();
    let counter = Counter { free_user_images: true, ..Counter::default() };
    let mut seen = 0;
    for case in golden["cases"].as_array().unwrap() {
        if case["fixture"] != "before-compaction" {
            continue;
        }
        seen += 1;
        let entries = case["entries"].as_u64().unwrap() as usize;
        let prefix: String = whole.split_inclusive('\n').take(entries + 1).collect();
        let transcript = Transcript::from_bytes(prefix.into_bytes()).unwrap();
        assert_eq!(transcript.problems, []);
        assert_eq!(transcript.entries.len(), entries);
        let context = transcript.context(None).unwrap();
        let mut roles: BTreeMap<String, u64> = BTreeMap::new();
        let mut estimate = 0;
        for entry in &context.entries {
            let message = entry.message().unwrap();
            *roles.entry(message.role.name().to_owned()).or_default() += 1;
            estimate += counter.message(&message).get();
        }
        assert_eq!(context.entries.len() as u64, case["ctxMessages"]);
        assert_eq!(serde_json::to_value(roles).unwrap(), case["ctxRoles"]);
        assert_eq!(estimate, case["ctxEstimate"]);
        assert_eq!(context.thinking_level, case["thinkingLevel"]);
        let (provider, model) = context.model.unwrap();
        assert_eq!(provider, case["model"]["provider"]);
        assert_eq!(model, case["model"]["modelId"]);
        let all = transcript.all_messages();
        let all: u64 = all.iter().map(|entry| entry.tokens(&counter).unwrap().get()).sum();
        assert_eq!(all, case["allMessagesEstimate"]);
        let first_kept = case["firstKeptEntryId"].as_str().unwrap();
        assert!(transcript.index_of(first_kept).is_some());
    }
    assert!(seen > 0);
}

#[test]
fn a_pi_session_in_numbers() {
    let Some(file) = recorded("pi/before-compaction.jsonl") else { return };
    let transcript = Transcript::open(&file).unwrap();
    assert_eq!(transcript.format, Format::PI);
    assert_eq!(transcript.header.version, Some(1));
    let stats = transcript.stats().unwrap();
    assert_eq!((stats.entries, stats.messages, stats.tool_results), (1002, 990, 448));
    assert_eq!((stats.bytes, stats.bad_lines), (2_370_492, 0));
    assert_eq!(transcript.compactions().unwrap(), 2);
    let line = transcript.main_line().unwrap();
    assert_eq!(line.len(), 990);
    assert_eq!(line.iter().filter(|item| item.request).count(), 484);
    assert_eq!(&**transcript.leaf().unwrap(), "000003e9");
}

#[test]
fn claude_code_requests_are_its_message_ids() {
    let files = [
        ("01_2026-01-05_a0bd162f", 23, 0),
        ("03_2026-01-08_0442a060", 219, 0),
        ("07_2026-01-20_130d7b7e", 42, 1),
        ("09_2026-01-21_de1ed521", 109, 0),
        ("15_2026-02-01_1e0816ef", 204, 0),
    ];
    for (name, requests, bad) in files {
        let Some(file) = recorded(&format!("claude-code/{name}.jsonl")) else { return };
        let transcript = Transcript::open(&file).unwrap();
        assert_eq!(transcript.format, Format::CLAUDE_CODE);
        let line = transcript.main_line().unwrap();
        assert_eq!(line.iter().filter(|item| item.request).count(), requests, "{name}");
        let stats = transcript.stats().unwrap();
        assert_eq!(stats.bad_lines, bad, "{name}");
        let results: usize =
            line.iter().map(|i| i.entry.message().unwrap().tool_results().count()).sum();
        assert_eq!(stats.tool_results, results, "{name}");
        let glued = transcript.problems.iter().filter(|p| p.kind == ProblemKind::GluedLine);
        assert_eq!(glued.count() as u64, bad, "{name}");
        // Nothing is lost: every line with a message is on the main line, except the summaries.
        let calls: usize = line.iter().map(|i| i.entry.outline().unwrap().calls.len()).sum();
        assert!(calls > 0 && calls >= results);
    }
}

#[test]
fn claude_code_compactions_begin_the_context() {
    let Some(file) = recorded("claude-code/03_2026-01-08_0442a060.jsonl") else { return };
    let transcript = Transcript::open(&file).unwrap();
    assert_eq!(transcript.compactions().unwrap(), 2);
    let context = transcript.context(None).unwrap();
    let first = context.entries[0].message().unwrap();
    assert_eq!(first.role.name(), "compactionSummary");
    assert_eq!(Some(context.entries[0].id()), context.compaction.as_ref());
    assert!(context.entries.len() < transcript.main_line().unwrap().len());
    let kinds = transcript.entries.iter().filter(|e| e.kind == EntryKind::Compaction);
    assert_eq!(kinds.count(), 2);
    assert_eq!(context.model.unwrap().0, "anthropic");
}
