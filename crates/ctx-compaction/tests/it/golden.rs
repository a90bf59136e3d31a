//! Profile `pi` must compute the same as pi 0.73.1 on real sessions.

use crate::{config_of, counter_of};
use ctx_compaction::{Config, History, PlanLimits, PlanOutcome, SerializeOptions, plan, serialize};
use ctx_core::{Chars, ContextView, TokenLedger, Tokens};
use ctx_facts::FileLists;
use ctx_session::Transcript;
use ctx_testkit::recorded;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

const WINDOW: Tokens = Tokens(200_000);

#[test]
fn profile_pi_cuts_serialises_and_lists_files_as_pi_does() {
    let Some(file) = recorded("pi/golden.json") else { return };
    let golden: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    let mut seen = 0;
    for case in golden["cases"].as_array().unwrap() {
        let fixture = format!("{}.jsonl", case["fixture"].as_str().unwrap());
        let fixture = file.with_file_name(fixture);
        // The golden file may contain figures of sessions that are not present.
        let Ok(whole) = std::fs::read_to_string(&fixture) else { continue };
        seen += 1;
        let entries = case["entries"].as_u64().unwrap() as usize;
        let prefix: String = whole.split_inclusive('\n').take(entries + 1).collect();
        let keep = case["keepRecentTokens"].as_u64().unwrap() as u32;
        let computed = compute(&prefix, keep);
        for (key, value) in computed.as_object().unwrap() {
            assert_eq!(*value, case[key], "{key}, {entries} entries, keep {keep}");
        }
    }
    assert!(seen > 0, "no session of the golden file is there");
}

/// The figures of one case, by their names in the golden file.
fn compute(session: &str, keep: u32) -> Value {
    let config = Config { keep_recent_tokens: keep, ..config_of("pi") };
    let transcript = Transcript::from_bytes(session.as_bytes().to_vec()).unwrap();
    let counter = counter_of("pi");
    let mut view = ContextView::new(TokenLedger::new(counter, WINDOW, config.reserve(WINDOW)));
    for entry in transcript.context(None).unwrap().entries {
        view.append(entry).unwrap();
    }
    let history = History::of(&view).unwrap();
    let PlanOutcome::Compact(plan) = plan(&history, &config, PlanLimits::default()).unwrap() else {
        panic!("there is a lot to compact");
    };
    assert_eq!(plan.shortened, []);

    let prefix_from = plan.turn_start.unwrap_or(plan.cut);
    let options =
        SerializeOptions { thinking: config.serialize_thinking, ..SerializeOptions::default() };
    let (before, prefix) = (history.read(0..prefix_from), history.read(prefix_from..plan.cut));
    let (conversation, turn) = (serialize(&before, &options), serialize(&prefix, &options));
    let mut files = FileLists::of(&before);
    files.merge(FileLists::of(&prefix));
    files.merge(history.previous.as_ref().map(|p| p.files.clone()).unwrap_or_default());
    let files = files.normalised();
    json!({
        "firstKeptEntryId": history.items[plan.cut].entry.id(),
        "isSplitTurn": plan.split_turn,
        "toSummarize": before.len(),
        "turnPrefix": prefix.len(),
        "previousSummaryChars": history.previous.as_ref().map(|p| Chars::of(&p.text)),
        "conversationChars": Chars::of(&conversation),
        "conversationSha256": sha256(&conversation),
        "prefixChars": Chars::of(&turn),
        "prefixSha256": sha256(&turn),
        "readFiles": files.read_files.len(),
        "modifiedFiles": files.modified_files.len(),
        // pi appends the blocks to the summary, with a blank line before them.
        "fileListSha256": sha256(&format!("\n\n{}", files.render())),
    })
}

fn sha256(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}
