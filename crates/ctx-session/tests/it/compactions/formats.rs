//! Round trips in every format.

use ctx_core::Compacted;
use ctx_session::{CompactionAuthor, Format, Transcript};
use ctx_testkit::recorded;
use serde_json::{Value, json};

use super::back::{every_format, there_and_back};
use super::house::*;

#[test]
fn a_compaction_round_trips_in_every_format() {
    for (format, text) in every_format() {
        let house = House::new(text.as_bytes());
        assert_eq!(house.open().format, format, "{text}");
        there_and_back(&house, format.name());
    }
    there_and_back(&House::ours(7), "ours");
}

#[test]
fn a_compaction_round_trips_in_recorded_sessions() {
    for folder in ["claude-code", "pi"].into_iter().filter_map(recorded) {
        for file in std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()) {
            if file.extension().is_some_and(|extension| extension == "jsonl") {
                let house = House::new(&std::fs::read(&file).unwrap());
                there_and_back(&house, &file.display().to_string());
            }
        }
    }
}

#[test]
fn a_history_in_a_single_line_can_be_kept_in_part() {
    let house = House::new(CODEX.as_bytes());
    let before = texts(&house.open(), None);
    assert_eq!(before, ["r0", "r1", "r2", "new"]);
    let first_kept = kept(&house.open(), 3);
    house.store(None, &compacted("sum", &first_kept)).unwrap();
    assert_eq!(texts(&house.open(), None), ["sum", "r1", "r2", "new"]);
    house.undo(None).unwrap();
    assert_eq!(texts(&house.open(), None), before);
}

/// pi continues the file lists of earlier compactions, unless its extensions wrote them.
#[test]
fn pi_continues_the_file_lists_of_a_ctx_compaction() {
    let cases = [
        (json!({"readFiles": ["a.rs"], "modifiedFiles": [], "receipt": {}}), false),
        (json!({"readFiles": ["a.rs"]}), true),
        (json!({"readFiles": "a.rs", "modifiedFiles": [7]}), true),
        (json!({"rung": "extractive"}), true),
        (json!([]), true),
        (json!(null), true),
    ];
    for (details, from_hook) in cases {
        for house in [House::ours(4), House::new(pi_tree().as_bytes())] {
            let compacted = compacted("sum", &kept(&house.open(), 2));
            let compacted = Compacted { details: Some(details.clone()), ..compacted };
            let id = house.store(None, &compacted).unwrap();
            let stored = house.open();
            let line = stored.raw_line(stored.index_of(&id).unwrap()).unwrap();
            let line: Value = serde_json::from_slice(&line).unwrap();
            assert_eq!(line["fromHook"], from_hook, "{line}");
            assert_eq!(line["details"], details);
            // The mark identifies the author, also in the session itself.
            let mut copy = Vec::new();
            stored.convert(Format::CTX, &mut copy).unwrap();
            for transcript in [stored, Transcript::from_bytes(copy).unwrap()] {
                let newest = transcript.compaction_list(None).unwrap().pop().unwrap();
                assert_eq!((newest.id, newest.by), (id.clone(), CompactionAuthor::Ctx), "{line}");
            }
        }
    }
}
