//! Converting other files to ctx sessions.

use ctx_core::{EntryId, Projected, Projection, ProjectionKey};
use ctx_session::{
    CompactionAuthor, Format, LogOptions, SessionLog, Transcript, rewrite_compacted,
    save_projections,
};
use ctx_testkit::recorded;

use super::back::{every_format, there_and_back};
use super::house::*;

/// Converts the transcript to a ctx session, with the home of the original.
fn as_session(house: &House) -> (House, Vec<String>) {
    let mut out = Vec::new();
    let left_out = house.open().convert(Format::CTX, &mut out).unwrap().left_out;
    (House::new(&out), left_out)
}

/// Returns what a model sees, without ids.
fn seen(transcript: &Transcript, leaf: Option<&EntryId>) -> Vec<String> {
    let entries = transcript.context(leaf).unwrap().entries;
    entries.iter().map(|entry| entry.message().unwrap().plain_text()).collect()
}

const ENTRIES: &str = r#"{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w","parentSession":"/p.jsonl","later":{"x":[1.50]}}
{"type":"message","id":"a","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"one"},"extra":1.50}
{"type":"thinking_level_change","id":"b","parentId":"a","timestamp":"2026-01-01T00:00:01.000Z","thinkingLevel":"high"}
{"type":"custom","id":"c","parentId":"b","timestamp":"2026-01-01T00:00:01.000Z","customType":"x","data":{"k":1}}
{"type":"from_the_future","id":"d","parentId":"c","timestamp":"2026-01-01T00:00:01.000Z","what":[1,2]}
{"type":"message","id":"e","parentId":"d","timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"assistant","content":[{"type":"text","text":"two"}],"provider":"p","model":"m"}}
{"type":"label","id":"f","parentId":"e","timestamp":"2026-01-01T00:00:01.000Z","targetId":"a","label":"start"}
{"type":"compaction","id":"g","parentId":"f","timestamp":"2026-01-01T00:00:01.000Z","summary":"theirs","firstKeptEntryId":"e","tokensBefore":9}
{"type":"message","id":"h","parentId":"a","timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"side"}}
{"type":"message","id":"i","parentId":"g","timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"three"}}
{"type":"session_info","id":"j","parentId":"i","timestamp":"2026-01-01T00:00:01.000Z","name":"A name"}
"#;

#[test]
fn a_pi_session_is_converted_with_only_the_mark_added() {
    let house = House::new(ENTRIES.as_bytes());
    let (ours, left_out) = as_session(&house);
    assert_eq!(left_out, Vec::<String>::new());
    let text = std::fs::read_to_string(&ours.path).unwrap();
    assert_eq!(text.replacen(r#","ctx":1"#, "", 1), ENTRIES);
    let transcript = ours.open();
    assert!(transcript.is_ctx_session() && !house.open().is_ctx_session());
    assert_eq!(transcript.problems, []);
    // The compaction's author is preserved, so an undo finds no compaction of ctx.
    assert_eq!(transcript.compaction_list(None).unwrap()[0].by, CompactionAuthor::Agent);
    assert_eq!(ours.undo(None), None);
    there_and_back(&ours, "a session that was pi's");
    // Converting again changes nothing.
    let (again, _) = as_session(&ours);
    assert_eq!(std::fs::read(&again.path).unwrap(), std::fs::read(&ours.path).unwrap());
}

#[test]
fn the_overlay_is_converted_too() {
    let house = House::new(pi_tree().as_bytes());
    let first = house.store(Some(&"c".into()), &compacted("first", &"b".into())).unwrap();
    let undo = house.undo(Some(&first)).unwrap();
    let second = house.store(None, &compacted("second", &"r".into())).unwrap();
    let before = house.open();
    assert_eq!(texts(&before, None), ["second", "right", "right again"]);
    let (ours, left_out) = as_session(&house);
    assert_eq!(left_out, Vec::<String>::new());
    let after = ours.open();
    assert_eq!(after.problems, []);
    assert_eq!(after.leaf(), before.leaf());
    for leaf in before.entries.iter().map(|entry| &entry.id) {
        assert_eq!(snapshot(&after, Some(leaf)), snapshot(&before, Some(leaf)), "{leaf}");
    }
    let (was, is) = (before.compaction_list(None), after.compaction_list(None));
    assert_eq!(is.unwrap(), was.unwrap());
    // Projections are not copied, and this is reported.
    let form = Projection {
        key: ProjectionKey {
            entry: "r".into(),
            hash: before.main_line().unwrap()[3].entry.hash().unwrap(),
        },
        layer: "t".into(),
        form: Projected::Dropped,
        reason: "old".into(),
        points_to: Vec::new(),
    };
    save_projections(&house.home, &house.path, &[form]).unwrap();
    let (_, left_out) = as_session(&house);
    assert_eq!(left_out, ["1 projection stored in the overlay"]);
    // Both can be undone in the new session; its context is then the whole session.
    ours.undo(Some(&undo)).unwrap();
    ours.undo(Some(&second)).unwrap();
    assert_eq!(texts(&ours.open(), None), ["first", "two", "three", "right", "right again"]);
    rewrite_compacted(&ours.path).unwrap();
    assert_eq!(texts(&ours.open(), None), ["first", "two", "three", "right", "right again"]);
}

#[test]
fn the_leaf_of_an_overlay_is_kept() {
    let moved = |target: &str| {
        let target = if target == "null" { target.to_owned() } else { format!("\"{target}\"") };
        let entry = r#"{"type":"leaf","id":"z","parentId":"r2","timestamp":"2026-01-01T00:00:01.000Z","targetId":"#;
        pi_tree() + entry + &target + "}\n"
    };
    let house = House::new(moved("l").as_bytes());
    house.store(None, &compacted("sum", &"l".into())).unwrap();
    let (ours, _) = as_session(&house);
    assert_eq!(texts(&ours.open(), None), ["sum", "left"]);
    assert_eq!(ours.open().leaf(), house.open().leaf());
    // At the entry that moves the leaf itself, which is not an ancestor of the leaf.
    house.store(Some(&"z".into()), &compacted("elsewhere", &"r".into())).unwrap();
    let (ours, _) = as_session(&house);
    assert_eq!(ours.open().leaf(), house.open().leaf());
    assert_eq!(texts(&ours.open(), None), ["sum", "left"]);
    let (empty, _) = as_session(&House::new(moved("null").as_bytes()));
    assert_eq!(empty.open().leaf(), None);
    let log = SessionLog::open(&empty.path, LogOptions::default()).unwrap();
    assert_eq!(log.leaf(), None);
}

#[test]
fn outdated_overlay_entries_of_a_rewritten_file_are_omitted() {
    let house = House::new(pi_tree().as_bytes());
    let gone = house.store(None, &compacted("gone", &"r".into())).unwrap();
    let undo = house.undo(Some(&gone)).unwrap();
    house.undo(Some(&undo)).unwrap();
    std::fs::write(&house.path, pi_tree().replace("\"right\"", "\"another\"")).unwrap();
    house.store(None, &compacted("new", &"r2".into())).unwrap();
    let (ours, left_out) = as_session(&house);
    assert_eq!(left_out.len(), 1, "{left_out:?}");
    assert!(left_out[0].starts_with("1 compaction"), "{left_out:?}");
    assert_eq!(ours.open().problems, []);
    assert_eq!(texts(&ours.open(), None), ["new", "right again"]);
    assert!(ours.open().index_of(&gone).is_none());
}

#[test]
fn every_format_converts_to_a_session_that_can_be_compacted() {
    for (format, text) in every_format() {
        let house = House::new(text.as_bytes());
        let name = format.name();
        let (plain, _) = as_session(&house);
        assert_eq!(seen(&plain.open(), None), seen(&house.open(), None), "{name}");
        // Compacted in the overlay, undone and redone: the session has the same state.
        house.store(None, &compacted("sum", &kept(&house.open(), 2))).unwrap();
        let undo = house.undo(None).unwrap();
        house.undo(Some(&undo)).unwrap();
        let (ours, left_out) = as_session(&house);
        assert!(!left_out.iter().any(|said| said.contains("beside")), "{name}: {left_out:?}");
        let transcript = ours.open();
        assert!(transcript.is_ctx_session(), "{name}");
        assert_eq!(transcript.problems, [], "{name}");
        assert_eq!(seen(&transcript, None), seen(&house.open(), None), "{name}");
        let in_force = |transcript: &Transcript| transcript.context(None).unwrap().compaction;
        assert_eq!(in_force(&transcript), in_force(&house.open()), "{name}");
        let line = |transcript: &Transcript| -> Vec<EntryId> {
            let line = transcript.main_line().unwrap();
            line.iter().map(|item| item.entry.id().clone()).collect()
        };
        // pi stores a message with results and a question as two.
        let ids = line(&transcript);
        let missing: Vec<_> =
            line(&house.open()).into_iter().filter(|id| !ids.contains(id)).collect();
        assert_eq!(missing, Vec::<EntryId>::new(), "{name}");
        rewrite_compacted(&ours.path).unwrap();
        assert_eq!(seen(&ours.open(), None), seen(&house.open(), None), "{name}");
        there_and_back(&plain, name);
        // Session and original give the same output in the other formats.
        for to in [Format::PI, Format::OPENAI_CHAT, Format::ANTHROPIC, Format::PONYBUNNY] {
            let mut out = Vec::new();
            plain.open().convert(to, &mut out).unwrap();
            let copy = Transcript::from_bytes(out).unwrap();
            assert_eq!(copy.format, to, "{name}");
            assert_eq!(copy.is_ctx_session(), to == Format::PI);
        }
    }
}

#[test]
fn invalid_headers_are_replaced() {
    let tree = pi_tree();
    let rest = tree.split_once('\n').unwrap().1;
    let v1 = "{\"type\":\"message\",\"message\":{\"role\":\"user\",\"content\":\"x\"}}\n";
    let cases = [
        (r#"{"type":"session","version":4,"id":"s","cwd":"/w","new":1}"#, rest, 0),
        (r#"{"type":"session","version":3,"id":"s","cwd":null}"#, rest, 1),
        (r#"{"type":"session","version":3,"id":7,"ctx":[]}"#, rest, 1),
        (r#"{"type":"session","id":"s","cwd":"/","parentSession":"/p"}"#, v1, 0),
        ("", rest, 0),
    ];
    for (header, rest, said) in cases {
        let house = House::new(format!("{header}\n{rest}").as_bytes());
        let (ours, left_out) = as_session(&house);
        assert_eq!(left_out.len(), said, "{header}: {left_out:?}");
        assert_eq!(seen(&ours.open(), None), seen(&house.open(), None), "{header}");
        let log = SessionLog::open(&ours.path, LogOptions::default()).unwrap();
        assert_eq!(log.leaf(), house.open().leaf(), "{header}");
        drop(log);
        let header = std::fs::read_to_string(&ours.path).unwrap();
        let kept = ["\"new\":1", "\"parentSession\":\"/p\""];
        let lines = kept.iter().filter(|field| house_has(&house, field));
        assert!(lines.into_iter().all(|field| header.contains(*field)), "{header}");
    }
}

fn house_has(house: &House, field: &str) -> bool {
    std::fs::read_to_string(&house.path).unwrap().contains(field)
}

#[test]
fn a_compaction_that_keeps_part_of_a_history_is_reported_as_omitted() {
    let house = House::new(CODEX.as_bytes());
    house.store(None, &compacted("sum", &kept(&house.open(), 3))).unwrap();
    house.undo(None).unwrap();
    let (ours, left_out) = as_session(&house);
    assert!(
        left_out.iter().any(|said| said.starts_with("1 compaction in the overlay")),
        "{left_out:?}"
    );
    assert_eq!(ours.open().problems, []);
}

#[test]
fn recorded_sessions_convert_to_ctx_sessions() {
    let files = ["pi/before-compaction.jsonl", "claude-code/03_2026-01-08_0442a060.jsonl"];
    for file in files.into_iter().filter_map(recorded) {
        let bytes = std::fs::read(&file).unwrap();
        let house = House::new(&bytes);
        house.store(None, &compacted("sum", &kept(&house.open(), 5))).unwrap();
        let (ours, _) = as_session(&house);
        assert_eq!(ours.open().problems, []);
        assert_eq!(seen(&ours.open(), None), seen(&house.open(), None));
        ours.undo(None).unwrap();
        house.undo(None).unwrap();
        assert_eq!(seen(&ours.open(), None), seen(&house.open(), None));
    }
}
