//! A seeded fuzz loop: randomly damaged transcripts must be read or refused without panicking.

#![allow(clippy::unwrap_used)] // Test helpers are test code.

use ctx_session::{Format, Transcript};
use ctx_testkit::Random;

/// Valid samples, one per format.
const SAMPLES: [&str; 6] = [
    r#"{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/"}
{"type":"message","id":"a","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":[{"type":"text","text":"h\u00e9 \ud83d\ude00"}]}}
{"type":"message","id":"b","parentId":"a","timestamp":"2026-01-01T00:00:02.000Z","message":{"role":"assistant","content":[{"type":"toolCall","id":"c","name":"n","arguments":{"x":[1,2.50]}}],"model":"m","provider":"p"}}
{"type":"message","id":"c","parentId":"b","timestamp":"2026-01-01T00:00:03.000Z","message":{"role":"toolResult","toolCallId":"c","content":[{"type":"text","text":"r"}]}}
{"type":"compaction","id":"d","parentId":"c","timestamp":"2026-01-01T00:00:04.000Z","summary":"s","firstKeptEntryId":"b","tokensBefore":5}
{"type":"context_edit","id":"e","parentId":"d","targetId":"c","replacement":{"content":"short"}}
{"type":"label","id":"f","parentId":"e","targetId":"a","label":"L"}
{"type":"leaf","id":"g","parentId":"f","targetId":"e"}
"#,
    r#"{"type":"session","id":"s","timestamp":"2025-01-01T00:00:00.000Z"}
{"type":"message","message":{"role":"user","content":"one"}}
{"type":"compaction","summary":"sum","firstKeptEntryIndex":1,"tokensBefore":1}
{"type":"message","message":{"role":"bashExecution","command":"ls","output":"x","exitCode":1}}
"#,
    r#"{"type":"user","uuid":"u","parentUuid":null,"sessionId":"s","message":{"role":"user","content":"go"}}
{"type":"assistant","uuid":"a1","parentUuid":"u","sessionId":"s","message":{"id":"m","model":"o","role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":{}}]}}
{"type":"user","uuid":"r","parentUuid":"a1","sessionId":"s","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"d"}]}}
{"type":"assistant","uuid":"a2","parentUuid":"r","sessionId":"s","message":{"id":"m","model":"o","role":"assistant","content":[{"type":"text","text":"x"}]}}
{"type":"system","subtype":"compact_boundary","uuid":"b","parentUuid":null,"sessionId":"s"}
{"type":"user","uuid":"k","parentUuid":"b","isCompactSummary":true,"sessionId":"s","message":{"role":"user","content":"sum"}}
{"type":"user","uuid":"x","parentUuid":null,"isSidechain":true,"sessionId":"s","message":{"role":"user","content":"side"}}
"#,
    r#"{"timestamp":"2026-01-01T00:00:00Z","type":"session_meta","payload":{"id":"s","instructions":"i"}}
{"timestamp":"2026-01-01T00:00:00Z","type":"response_item","payload":{"type":"function_call","name":"sh","arguments":"{\"c\":1}","call_id":"f"}}
{"timestamp":"2026-01-01T00:00:00Z","type":"response_item","payload":{"type":"function_call_output","call_id":"f","output":"one"}}
{"timestamp":"2026-01-01T00:00:00Z","type":"compacted","payload":{"message":"s","replacement_history":[{"type":"message","role":"user","content":[]}]}}
"#,
    r#"{"messages":[{"role":"system","content":"s"},{"role":"user","content":"u"},{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"n","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"r"}],"tools":[{"type":"function"}]}"#,
    "{\n// hand\nmessages: [{role: 'user', content: 'a'}, {role: 'assistant', content: 'b', toolCalls: [{id: 'c', name: 'n', arguments: {}}]}], compactedHistory: [{role: 'system', content: 's'}]}",
];

/// Tokens that are significant to a reader.
const PIECES: [&[u8]; 16] = [
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"",
    b"\\",
    b"\n",
    b"\r\n",
    b"\0\0\0",
    b"\xFF\xFE",
    b"\\ud800",
    b",",
    b"null",
    b"-1e999",
    b"{\"type\":\"",
    b"\xEF\xBB\xBF",
];

/// Returns a random range of `bytes`.
fn range(bytes: &[u8], random: &mut Random) -> std::ops::Range<usize> {
    let from = random.below(bytes.len());
    let len = random.below(40.min(bytes.len() - from + 1));
    from..from + len
}

fn damage(bytes: &mut Vec<u8>, random: &mut Random) {
    if bytes.is_empty() {
        return;
    }
    let at = random.below(bytes.len());
    match random.below(7) {
        0 => bytes[at] ^= 1 << random.below(8),
        1 => bytes.truncate(at),
        2 => drop(bytes.drain(range(bytes, random))),
        3 => {
            let copy = bytes[range(bytes, random)].to_vec();
            bytes.splice(at..at, copy);
        }
        4 => {
            let lines: Vec<&[u8]> = bytes.split_inclusive(|&b| b == b'\n').collect();
            let copy = lines[random.below(lines.len())].to_vec();
            bytes.splice(at..at, copy);
        }
        5 => {
            let mut lines: Vec<Vec<u8>> =
                bytes.split_inclusive(|&b| b == b'\n').map(<[u8]>::to_vec).collect();
            let (a, b) = (random.below(lines.len()), random.below(lines.len()));
            lines.swap(a, b);
            *bytes = lines.concat();
        }
        _ => {
            let piece = PIECES[random.below(PIECES.len())];
            bytes.splice(at..at, piece.iter().copied());
        }
    }
}

/// Calls every function of a transcript.
fn exercise(bytes: Vec<u8>) -> bool {
    let Ok(transcript) = Transcript::from_bytes(bytes) else { return false };
    let count = transcript.entries.len();
    for (index, entry) in transcript.entries.iter().enumerate() {
        assert!(entry.parent().is_none_or(|parent| parent < index));
        assert!(transcript.index_of(&entry.id).is_some());
        transcript.raw_line(index).unwrap();
    }
    let ids: std::collections::HashSet<_> = transcript.entries.iter().map(|e| &e.id).collect();
    assert_eq!(ids.len(), count);
    for tip in transcript.tips() {
        let id = transcript.entries[tip].id.clone();
        for entry in transcript.context(Some(&id)).unwrap().entries {
            entry.message().unwrap();
        }
    }
    let said = transcript.main_line().unwrap();
    for item in &said {
        item.entry.message().unwrap();
    }
    transcript.stats().unwrap();
    transcript.inspect().unwrap();
    transcript.unreadable(&mut std::io::sink()).unwrap();
    for format in
        [Format::CTX, Format::PI, Format::OPENAI_CHAT, Format::ANTHROPIC, Format::PONYBUNNY]
    {
        transcript.convert(format, &mut Vec::new()).unwrap();
    }
    let mut copy = Vec::new();
    transcript.repaired_copy(&mut copy).unwrap();
    // The line that identified the format may be omitted; a pi copy has its header.
    if transcript.format == Format::PI {
        let again = Transcript::from_bytes(copy.clone()).unwrap();
        let again = again.main_line().unwrap().len();
        assert_eq!(again, said.len(), "{}", String::from_utf8_lossy(&copy));
    }
    true
}

#[test]
fn damaged_at_random() {
    let mut random = Random::seeded(1);
    let mut read = 0;
    let rounds = ctx_testkit::cases(6_000) as usize;
    for round in 0..rounds {
        let mut bytes = SAMPLES[round % SAMPLES.len()].as_bytes().to_vec();
        for _ in 0..=random.below(6) {
            damage(&mut bytes, &mut random);
        }
        read += usize::from(exercise(bytes));
    }
    // If nearly everything were refused, the loop would test nothing.
    assert!(read > rounds / 2, "only {read} were read");
}

#[test]
fn samples_are_valid() {
    for sample in SAMPLES {
        assert!(exercise(sample.as_bytes().to_vec()));
        let transcript = Transcript::from_bytes(sample.as_bytes().to_vec()).unwrap();
        assert_eq!(transcript.problems, [], "{sample}");
        assert_eq!(transcript.inspect().unwrap(), [], "{sample}");
    }
}

#[test]
fn hostile_input_takes_linear_time() {
    let user =
        r#"{"type":"message","id":"a","parentId":"b","message":{"role":"user","content":"x"}}"#;
    let call = |n: usize| {
        format!(
            r#"{{"type":"assistant","uuid":"{n}","message":{{"id":"m","role":"assistant","content":[{{"type":"tool_use","id":"{n}","name":"n","input":{{}}}}]}}}}"#
        )
    };
    let many_calls: Vec<_> = (0..30_000).map(call).collect();
    let inputs = [
        // One id, each time with the same content, or each time with another parent.
        format!("{user}\n").repeat(30_000),
        (0..30_000).map(|n| user.replace("\"b\"", &format!("\"{n:05}\"")) + "\n").collect(),
        many_calls.join("\n"),
        "{".repeat(3_000_000),
        format!("{user}\n{}", "{\"type\":\"x\",\"y\":".repeat(200_000)),
        format!("{user}\n{}", "x\n".repeat(500_000)),
        format!("[{}]", vec!["{\"role\":\"user\"}"; 50_000].join(",")),
        format!("{{a:{}", "[".repeat(1_000_000)),
        format!("{user}\n{{{}}}", vec!["\"k\":1"; 200_000].join(",")),
    ];
    for input in inputs {
        let start = std::time::Instant::now();
        if let Ok(transcript) = Transcript::from_bytes(input.into_bytes()) {
            for entry in transcript.context(None).unwrap().entries {
                entry.message().unwrap();
            }
            assert!(transcript.problems.len() <= 1_001);
        }
        // Generous for a slow machine without optimisation; quadratic time would take minutes.
        assert!(start.elapsed().as_secs() < 30);
    }
}
