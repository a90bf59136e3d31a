//! Compaction of real transcripts of other agents, if available.

use std::path::PathBuf;

use serde_json::Value;

use crate::support::{Room, data, text};

/// Returns every recorded transcript.
fn transcripts() -> Vec<PathBuf> {
    let folders = ["pi", "claude-code"].into_iter().filter_map(data);
    let files = folders.flat_map(|folder| {
        let items = std::fs::read_dir(folder).expect("a folder");
        items.map(|item| item.expect("an entry").path())
    });
    let mut files: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|e| e == "jsonl")).collect();
    files.sort();
    files
}

/// The number of required facts, and the number kept in the summaries.
#[derive(Default)]
struct Kept {
    facts: u64,
    /// The facts in the stored texts, weighted as in the audit.
    kept: f64,
    worst: Option<f64>,
}

impl Kept {
    /// Adds the receipt of a summary, after checking its plausibility.
    fn see(&mut self, receipt: &Value, summary: &str, place: &str) {
        assert!(receipt.is_object(), "{place}: no receipt");
        let audit = &receipt["audit"];
        for made_up in audit["ungrounded"].as_array().expect("a list") {
            let made_up = made_up.as_str().expect("text");
            assert!(!summary.contains(made_up), "{place}: the summary contains {made_up}");
        }
        let count = |key: &str| audit[key].as_u64().expect("a number");
        assert_eq!(count("facts"), count("kept") + count("repaired") + count("missing"), "{place}");
        self.facts += count("facts");
        let coverage = audit["coverage"].as_f64().expect("a share");
        self.kept += coverage * count("facts") as f64;
        self.worst = self.worst.into_iter().chain([coverage]).reduce(f64::min);
    }

    fn share(&self) -> f64 {
        self.kept / self.facts.max(1) as f64
    }
}

#[test]
#[expect(clippy::print_stderr, reason = "the figures are worth knowing")]
fn the_compactions_of_recorded_transcripts_keep_most_facts() {
    if transcripts().is_empty() {
        return;
    }
    for window in ["16000", "32000", "128000"] {
        let (mut once, mut replayed) = (Kept::default(), Kept::default());
        for path in transcripts() {
            let room = Room::new();
            let place = format!("{} {window}", path.display());
            let done = room.json(&["compact", text(&path), "--window", window, "--dry-run"]);
            if done["compacted"] == true {
                let result = &done["result"];
                let summary = result["summary"].as_str().expect("text");
                once.see(&result["details"]["receipt"], summary, &place);
                assert!(result["tokensAfter"].as_u64() < result["tokensBefore"].as_u64());
            } else {
                assert!(done["reason"].is_string(), "{place}");
            }
            let replay = room.json(&["replay", text(&path), "--window", window]);
            assert_eq!(replay["totals"]["overflowsWith"], 0, "{place}");
            for compaction in replay["compactions"].as_array().expect("a list") {
                let summary = compaction["summary"].as_str().expect("text");
                replayed.see(&compaction["details"]["receipt"], summary, &place);
            }
            assert!(room.files().is_empty(), "a dry run stores nothing");
        }
        for (what, kept) in [("compact", once), ("replay", replayed)] {
            let (share, facts) = (kept.share(), kept.facts);
            let worst = kept.worst.unwrap_or(1.0);
            eprintln!("{what} {window}: {share:.3} of {facts} facts, {worst:.3} at worst");
            // In the smallest window a summary of a session of 140,000 tokens is limited to 3,200 tokens,
            // of which a tenth quotes rules files.
            let least = if window == "16000" { 0.8 } else { 0.95 };
            assert!(share >= least, "{what} {window}: {share}");
            // Over all rounds of a session.
            assert!(window == "16000" || worst >= 0.9, "{what} {window}: {worst}");
        }
    }
}

#[test]
fn a_compaction_can_be_undone_in_every_recorded_transcript() {
    for path in transcripts() {
        let room = Room::new();
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
        let copy = room.write(name, std::fs::read(&path).expect("a file"));
        let file = text(&copy);
        let context = || {
            let ran = room.ctx(&["assemble", file, "--window", "200000", "--json"]);
            assert_eq!(ran.code, Some(0), "{}", ran.stderr);
            ran.stdout
        };
        let before = context();
        let done = room.json(&["compact", file, "--window", "32000"]);
        assert_eq!(done["compacted"], true, "{name}: {done}");
        let status = room.json(&["status", file, "--window", "32000"]);
        // If the window is too small for the recorded agent's system prompt, that prompt is not
        // counted.
        let constant = status["calibration"]["constant"].as_u64().unwrap_or_default();
        let measured = status["context"]["tokens"].as_u64().expect("a number");
        let after = done["result"]["tokensAfter"].as_u64().expect("a number");
        let bare = measured.saturating_sub(constant).abs_diff(after);
        assert!(measured.abs_diff(after).min(bare) <= 2, "{name}: {measured} and {after}");
        let diff = room.json(&["diff", file]);
        assert!(diff["removed"].as_array().is_some_and(|removed| !removed.is_empty()), "{name}");
        assert_eq!(room.json(&["compact", file, "--undo"])["undone"], true, "{name}");
        assert!(context() == before, "{name}: the context changed");
    }
}
