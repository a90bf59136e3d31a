//! Damage hides nothing else, and costs no more than linear time.

use ctx_session::{Format, ProblemKind, Transcript};
use ctx_testkit::Random;

use super::house::*;

#[test]
fn a_first_kept_entry_that_is_not_before_its_compaction_keeps_nothing() {
    let compaction = |first_kept: &str| {
        let line = format!(
            r#"{{"type":"compaction","id":"k","parentId":"c","timestamp":"2026-01-01T00:00:02.000Z","summary":"sum","firstKeptEntryId":"{first_kept}","tokensBefore":1}}"#
        );
        line + "\n" + &pi_line("after", "\"k\"", "after")
    };
    // A compaction that names itself keeps nothing.
    for (first_kept, problems) in [("nowhere", 1), ("after", 1), ("k", 0), ("l", 0), ("b", 0)] {
        let text = pi_tree() + &compaction(first_kept);
        let transcript = Transcript::from_bytes(text.into_bytes()).unwrap();
        let kept: &[&str] = if first_kept == "b" { &["two", "three"] } else { &[] };
        let expected = [&["sum"], kept, &["after"]].concat();
        assert_eq!(texts(&transcript, None), expected, "{first_kept}");
        let kinds: Vec<_> = transcript.problems.iter().map(|p| p.kind).collect();
        assert_eq!(kinds, vec![ProblemKind::BrokenCompaction; problems], "{first_kept}");
        // Only a full check finds that an entry is on another branch.
        let full = transcript.inspect().unwrap();
        let full = full.iter().filter(|p| p.kind == ProblemKind::BrokenCompaction);
        assert_eq!(full.count(), problems + usize::from(first_kept == "l"), "{first_kept}");
    }
}

/// A compaction in an overlay, as another program may have written it.
fn foreign_line(id: &str, parent: &str, first_kept: &str) -> String {
    format!(
        r#"{{"type":"compaction","id":"{id}","parentId":{parent},"summary":"sum","firstKeptEntryId":{first_kept},"tokensBefore":1}}"#
    )
}

#[test]
fn a_damaged_overlay_hides_nothing_and_is_reported() {
    let house = House::new(pi_tree().as_bytes());
    let plain = snapshot(&house.open(), None);
    house.store(None, &compacted("sum", &"c".into())).unwrap();
    let sound = std::fs::read_to_string(house.overlay()).unwrap();
    let nothing_kept = ["sum".to_owned()];
    let header = sound.lines().next().unwrap();
    let cases: Vec<(String, Option<&[String]>)> = vec![
        ("nonsense".into(), None),
        ("{\"type\":\"compaction\"".into(), None),
        ("\0\0\0".into(), None),
        ("{}".into(), None),
        (foreign_line("x", "null", "\"c\""), None),
        (foreign_line("x", "\"gone\"", "\"c\""), None),
        (foreign_line("x", "\"x\"", "\"c\""), None),
        (foreign_line("c", "\"r2\"", "\"b\""), None),
        (foreign_line("x", "\"r2\"", "\"x\""), Some(&nothing_kept)),
        (foreign_line("x", "\"r2\"", "\"gone\""), Some(&nothing_kept)),
        (foreign_line("x", "\"r2\"", "7"), Some(&nothing_kept)),
        (foreign_line("x", "\"r2\"", "\"l\""), Some(&nothing_kept)),
        (r#"{"type":"custom","customType":"ctx.undo","id":"x","parentId":"r2","data":{"targetId":"gone"}}"#.into(), None),
        (r#"{"type":"custom","customType":"ctx.undo","id":"x","parentId":"r2"}"#.into(), None),
        (r#"{"type":"message","id":"x","parentId":"r2","message":{"role":"user","content":"no"}}"#.into(), None),
        (r#"{"type":"leaf","id":"x","parentId":"r2","targetId":"a"}"#.into(), None),
    ];
    for (line, expected) in cases {
        std::fs::write(house.overlay(), format!("{header}\n{line}\n")).unwrap();
        let transcript = house.open();
        assert_eq!(transcript.problems.len(), 1, "{line}: {:?}", transcript.problems);
        match expected {
            Some(expected) => assert_eq!(texts(&transcript, None), expected, "{line}"),
            None => assert_eq!(snapshot(&transcript, None), plain, "{line}"),
        }
        transcript.compaction_list(None).unwrap();
        transcript.messages_with_compactions(None).unwrap();
    }
    // Cut at any byte, the transcript is readable, with or without its compaction.
    for cut in 0..sound.len() - 1 {
        std::fs::write(house.overlay(), &sound[..cut]).unwrap();
        assert_eq!(snapshot(&house.open(), None), plain, "{cut}");
    }
    std::fs::write(house.overlay(), &sound).unwrap();
    assert_eq!(texts(&house.open(), None)[0], "sum");
    // If two lines have the same id, the first wins.
    let line = sound.lines().nth(1).unwrap();
    std::fs::write(house.overlay(), format!("{sound}{line}\n")).unwrap();
    assert_eq!(house.open().compactions().unwrap(), 1);
    // An overlay that cannot be read at all.
    std::fs::remove_file(house.overlay()).unwrap();
    std::fs::create_dir(house.overlay()).unwrap();
    assert_eq!(snapshot(&house.open(), None), plain);
    assert_eq!(house.open().problems.len(), 1);
}

#[test]
fn a_compaction_of_a_file_that_was_rewritten_hides_nothing() {
    let chat = |messages: &[&str]| {
        let messages = messages.iter().map(|m| format!(r#"{{"role":"user","content":"{m}"}}"#));
        format!("[{}]", messages.collect::<Vec<_>>().join(","))
    };
    let long = "x".repeat(2_000);
    let house = House::new(chat(&[&long, "two", "three", "four"]).as_bytes());
    house.store(None, &compacted("sum", &"00000002".into())).unwrap();
    std::fs::write(&house.path, chat(&[&long, "two", "three", "four", "five"])).unwrap();
    assert_eq!(texts(&house.open(), None), ["sum", "three", "four", "five"]);
    for rewritten in [&[&*long, "three", "four", "five"][..], &[&long, "other"]] {
        std::fs::write(&house.path, chat(rewritten)).unwrap();
        assert_eq!(texts(&house.open(), None), rewritten);
        assert_eq!(house.open().problems.len(), 1);
    }
}

#[test]
fn many_compactions_take_linear_time() {
    let house = House::ours(2);
    let lines: String = (0..20_000)
        .map(|n| {
            let parent = if n == 0 { "null".to_owned() } else { format!("\"{}\"", n - 1) };
            pi_line(&n.to_string(), &parent, "x")
        })
        .collect();
    std::fs::write(&house.path, format!("{PI_HEADER}{lines}")).unwrap();
    house.store(None, &compacted("sum", &"19999".into())).unwrap();
    let header = std::fs::read_to_string(house.overlay()).unwrap();
    let header = header.lines().next().unwrap();
    let many: String = (0..20_000)
        .map(|n| {
            let undo = format!(
                r#"{{"type":"custom","customType":"ctx.undo","id":"u{n}","parentId":"k{n}","data":{{"targetId":"k{n}"}}}}"#
            );
            foreign_line(&format!("k{n}"), "\"19999\"", "\"19000\"") + "\n" + &undo + "\n"
        })
        .collect();
    std::fs::write(house.overlay(), format!("{header}\n{many}")).unwrap();
    let transcript = house.open();
    assert_eq!(transcript.problems, []);
    assert_eq!(transcript.context(None).unwrap().entries.len(), 20_000);
    assert_eq!(transcript.compaction_list(None).unwrap().len(), 20_000);
    assert_eq!(transcript.messages_with_compactions(None).unwrap().trailing.len(), 0);
    assert_eq!(house.undo(None), None);
    let mut copy = Vec::new();
    transcript.repaired_copy(&mut copy).unwrap();
    assert_eq!(copy, std::fs::read(&house.path).unwrap());
}

fn damage(lines: &mut Vec<String>, random: &mut Random) {
    let (from, to) = (random.below(lines.len()), random.below(lines.len()));
    match random.below(5) {
        0 => lines.swap(from, to),
        1 => drop(lines.remove(from)),
        2 => lines.insert(to, lines[from].clone()),
        3 => {
            let at = random.below(lines[from].len());
            lines[from].truncate(at);
        }
        // One id replaced by another: cycles, unknown ids, messages that are undone.
        _ => {
            let ids = ["a", "b", "c", "l", "r", "r2", "o", "k1", "k2", "u1", "u2", "gone"];
            let old = format!("\"{}\"", ids[random.below(ids.len())]);
            let new = format!("\"{}\"", ids[random.below(ids.len())]);
            lines[from] = lines[from].replacen(&old, &new, 1);
        }
    }
}

/// Whatever the overlay contains, a ctx session converted from both reads the same on every branch.
fn as_one_session(transcript: &Transcript) {
    let mut copy = Vec::new();
    transcript.convert(Format::CTX, &mut copy).unwrap();
    let session = Transcript::from_bytes(copy).unwrap();
    assert!(session.is_ctx_session());
    assert_eq!(snapshot(&session, None), snapshot(transcript, None));
    for entry in session.entries.iter().filter(|entry| transcript.index_of(&entry.id).is_some()) {
        let id = Some(&entry.id);
        assert_eq!(snapshot(&session, id), snapshot(transcript, id), "{}", entry.id);
    }
}

#[test]
fn a_randomly_damaged_overlay_leaves_the_transcript_complete() {
    let house = House::new(pi_tree().as_bytes());
    let undo = |id: &str, parent: &str, target: &str| {
        format!(
            r#"{{"type":"custom","customType":"ctx.undo","id":"{id}","parentId":"{parent}","data":{{"targetId":"{target}"}}}}"#
        )
    };
    let sound = [
        r#"{"type":"overlay","version":1,"source":"/"}"#.to_owned(),
        foreign_line("k1", "\"c\"", "\"b\""),
        undo("u1", "r2", "k1"),
        undo("u2", "u1", "u1"),
        foreign_line("k2", "\"u2\"", "\"r\""),
        r#"{"type":"context_edit","id":"e","parentId":"k2","targetId":"r","replacement":{"content":"x"}}"#.to_owned(),
    ];
    let overlay = house.overlay();
    std::fs::create_dir_all(overlay.parent().unwrap()).unwrap();
    let plain = Transcript::open(&house.path).unwrap();
    let line = plain.main_line().unwrap().len();
    let mut random = Random::seeded(1);
    let mut in_force = 0;
    let rounds = ctx_testkit::cases(3_000);
    for round in 0..rounds {
        let mut lines = sound.to_vec();
        for _ in 0..=random.below(4) {
            damage(&mut lines, &mut random);
        }
        std::fs::write(&overlay, lines.join("\n")).unwrap();
        let transcript = house.open();
        in_force += transcript.compactions().unwrap();
        assert_eq!(transcript.main_line().unwrap().len(), line);
        assert_eq!(transcript.tips().len(), plain.tips().len());
        for (index, entry) in transcript.entries.iter().enumerate() {
            assert!(entry.parent().is_none_or(|parent| parent < index));
            assert_eq!(transcript.index_of(&entry.id), Some(index));
            let id = Some(&entry.id);
            for entry in transcript.context(id).unwrap().entries {
                entry.message().unwrap();
            }
            transcript.compaction_list(id).unwrap();
            transcript.messages_with_compactions(id).unwrap();
        }
        let mut copy = Vec::new();
        transcript.convert(Format::PI, &mut copy).unwrap();
        assert!(copy == pi_tree().as_bytes());
        if round % 10 == 0 {
            as_one_session(&transcript);
        }
    }
    assert!(in_force > rounds as usize / 3, "only {in_force} compactions were in force");
}
