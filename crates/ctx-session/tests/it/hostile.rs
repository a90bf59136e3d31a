//! Hostile files, and the findings of a full check.

#![allow(clippy::unwrap_used)] // Test helpers are test code.

use ctx_core::{Block, ErrorKind};
use ctx_session::{Format, ProblemKind, Severity, Transcript};
use expect_test::expect;

fn read(text: impl Into<Vec<u8>>) -> Transcript {
    Transcript::from_bytes(text.into()).unwrap()
}

/// Returns the texts of the main line, with a star before each that answers a request.
fn texts_of(transcript: &Transcript) -> Vec<String> {
    let line = transcript.main_line().unwrap();
    line.iter()
        .map(|item| {
            let star = if item.request { "*" } else { "" };
            format!("{star}{}", item.entry.message().unwrap().plain_text())
        })
        .collect()
}

fn kinds(transcript: &Transcript) -> Vec<ProblemKind> {
    transcript.problems.iter().map(|problem| problem.kind).collect()
}

fn unreadable(transcript: &Transcript) -> String {
    let mut out = Vec::new();
    transcript.unreadable(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// A message of a pi session.
fn pi(id: &str, parent: &str, message: &str) -> String {
    format!(
        r#"{{"type":"message","id":"{id}","parentId":{parent},"timestamp":"2026-01-01T00:00:01.000Z","message":{message}}}"#
    )
}

fn user(id: &str, parent: &str) -> String {
    pi(id, &format!("\"{parent}\""), &format!(r#"{{"role":"user","content":"{id}"}}"#))
}

fn session(lines: &[String]) -> String {
    let header = r#"{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/"}"#;
    format!("{header}\n{}\n", lines.join("\n"))
}

#[test]
fn damage_in_the_middle_of_a_document() {
    let json5 = "{messages:[{role:'user',content:'a'},{role:'assistant',content:'b'},\n{role:'user',content:'c' BROKEN},{role:'assistant',content:'d'}]}";
    let transcript = read(json5);
    assert_eq!(transcript.format, Format::PONYBUNNY);
    assert_eq!(texts_of(&transcript), ["a", "*b", "*d"]);
    assert_eq!(kinds(&transcript), [ProblemKind::DamagedDocument]);
    assert_eq!(transcript.problems[0].line, Some(2));
    assert_eq!(unreadable(&transcript), "{role:'user',content:'c' BROKEN}\n");

    let json = r#"{"model":"m","messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b},{"role":"user","content":"c"}],"tools":[]}"#;
    let transcript = read(json);
    assert_eq!(transcript.format, Format::OPENAI_CHAT);
    assert_eq!(texts_of(&transcript), ["a", "c"]);
    assert_eq!(transcript.model().unwrap().unwrap().1, "m");
    assert!(transcript.tools.is_some());
    assert!(unreadable(&transcript).contains(r#""content":"b}"#));
}

#[test]
fn json5_of_any_depth() {
    let deep = format!("{}1{}", "{a:[".repeat(50_000), "]}".repeat(50_000));
    let text = format!(
        "{{messages:[{{role:'user',content:'q'}},{{role:'assistant',content:'c',toolCalls:[{{id:'c1',name:'f',arguments:{deep}}}]}}]}}"
    );
    let transcript = read(text.as_str());
    assert_eq!(transcript.format, Format::PONYBUNNY);
    assert_eq!(texts_of(&transcript), ["q", "*c"]);
    let call = transcript.main_line().unwrap()[1].entry.message().unwrap();
    assert!(call.tool_calls().next().unwrap().arguments.as_str().len() > 400_000);
    assert!(texts_of(&read(&text[..text.len() / 2])).contains(&"q".to_owned()));
}

#[test]
fn values_that_are_not_messages_are_kept_and_not_sent() {
    let text = r#"[{"role":"user","content":"a"},5,null,"str",{"role":"assistant","content":"z"}]"#;
    let transcript = read(text);
    assert_eq!(transcript.entries.len(), 5);
    assert_eq!(texts_of(&transcript), ["a", "*z"]);
    let mut copy = Vec::new();
    transcript.convert(Format::OPENAI_CHAT, &mut copy).unwrap();
    assert_eq!(String::from_utf8(copy).unwrap().trim(), text);
}

#[test]
fn slight_damage_in_one_field() {
    let answer = r#"{"role":"assistant","content":[{"type":"text","text":"b"}],"usage":{"input":NaN,"output":5},"model":"m"}"#;
    let lines = [user("a", "x").replace("\"x\"", "null"), pi("b", "\"a\"", answer), user("c", "b")];
    let transcript = read(session(&lines));
    assert_eq!(texts_of(&transcript), ["a", "*b", "c"]);
    assert_eq!(kinds(&transcript), [ProblemKind::MendedValue]);
    let usage = transcript.main_line().unwrap()[1].entry.message().unwrap().meta.usage.unwrap();
    assert_eq!((usage.input, usage.output), (0, 5));
    let mut copy = Vec::new();
    transcript.repaired_copy(&mut copy).unwrap();
    assert_eq!(kinds(&read(copy)), []);

    let body = r#"{"temperature":NaN,"messages":[{"role":"user","content":"a"},]}"#;
    let transcript = read(body);
    assert_eq!(transcript.format, Format::OPENAI_CHAT);
    assert_eq!(
        (texts_of(&transcript), kinds(&transcript)),
        (vec!["a".into()], vec![ProblemKind::MendedValue])
    );
}

#[test]
fn siblings_of_a_lost_line_stay_siblings() {
    let lost = user("x", "b");
    let lines = [
        user("a", "r").replace("\"r\"", "null"),
        user("b", "a"),
        lost[..lost.len() - 4].to_owned(),
        user("c", "x"),
        user("d", "c"),
        user("e", "x"),
    ];
    let transcript = read(session(&lines));
    let parents: Vec<_> = transcript.entries.iter().map(ctx_session::TreeEntry::parent).collect();
    assert_eq!(parents, [None, Some(0), Some(1), Some(2), Some(1)]);
}

#[test]
fn broken_links_are_reported() {
    let lines = [
        user("a", "r").replace("\"r\"", "null"),
        user("self", "self"),
        user("early", "late"),
        user("x", "y"),
        user("y", "x"),
        user("late", "a"),
        user("gone", "nowhere"),
    ];
    let transcript = read(session(&lines));
    let texts: Vec<_> = transcript.problems.iter().map(ToString::to_string).collect();
    let expected = [
        "line 3: names itself as its parent",
        "line 4: has a parent that comes later in the file",
        "line 5: is part of a cycle",
        "line 8: parent nowhere is not in the file",
    ];
    assert_eq!(texts.len(), expected.len(), "{texts:?}");
    for (text, expected) in texts.iter().zip(expected) {
        assert!(text.starts_with(expected), "{text}");
    }
}

#[test]
fn a_file_in_reverse_order() {
    let id = |n: usize| format!("e{n}");
    let mut lines: Vec<_> = (1..2_000).map(|n| user(&id(n), &id(n - 1))).collect();
    lines.insert(0, user("e0", "r").replace("\"r\"", "null"));
    let compaction = r#"{"type":"compaction","id":"k","parentId":"e1999","timestamp":"t","summary":"s","firstKeptEntryId":"e1998","tokensBefore":5}"#;
    lines.push(compaction.to_owned());
    lines.reverse();
    let transcript = read(session(&lines));
    assert_eq!(kinds(&transcript), [ProblemKind::Reordered]);
    let texts = texts_of(&transcript);
    assert_eq!(texts.len(), 2_000);
    assert_eq!((texts[0].as_str(), texts[1_999].as_str()), ("e0", "e1999"));
    let context = transcript.context(None).unwrap();
    assert_eq!(context.entries.len(), 3);
    let mut copy = Vec::new();
    transcript.repaired_copy(&mut copy).unwrap();
    let copy = read(copy);
    assert_eq!((kinds(&copy), texts_of(&copy)), (vec![], texts));

    // Only a cycle, each entry a child of the next one.
    let ring: Vec<_> = (0..100).map(|n| user(&id(n), &id((n + 1) % 100))).collect();
    let transcript = read(session(&ring));
    assert_eq!(texts_of(&transcript).len(), 100);
}

#[test]
fn claude_code_lines() {
    let line = |uuid: &str, more: &str, message: &str| {
        format!(
            r#"{{"parentUuid":null,"isSidechain":false,"sessionId":"s","timestamp":"2026-01-01T00:00:00Z"{more},"uuid":"{uuid}","message":{message}}}"#
        )
    };
    let user = line("u", r#","type":"user""#, r#"{"role":"user","content":"go"}"#);
    let part = |uuid: &str, block: &str| {
        let message = format!(
            r#"{{"model":"opus","id":"m1","role":"assistant","content":[{block}],"usage":{{"input_tokens":5}}}}"#
        );
        line(uuid, r#","type":"assistant""#, &message)
    };
    let thinking = part("a1", r#"{"type":"thinking","thinking":"hm","signature":"s"}"#);
    let text = part("a2", r#"{"type":"text","text":"done"}"#);
    let all = [&*user, &thinking, &text].join("\n") + "\n";
    let transcript = read(all.as_str());
    for id in ["a1", "a2"] {
        let id = transcript.find(id);
        for entries in [
            transcript.context(id.as_ref()).unwrap().entries,
            transcript.messages_to(id.as_ref()).unwrap().into_iter().map(|i| i.entry).collect(),
        ] {
            assert_eq!(entries.len(), 2);
            assert_eq!(entries[1].message().unwrap().blocks.len(), 2);
        }
    }
    // The same line, first glued to another, later with its fields in another order.
    let again = r#"{"role":"assistant","id":"m1","model":"opus","content":[{"type":"text","text":"done"}],"usage":{"input_tokens":5}}"#;
    let again = line("a2", r#","type":"assistant","cwd":"/elsewhere""#, again);
    let summary = r#"{"type":"summary","summary":"t","leafUuid":"x"}"#;
    let transcript = read(format!("{user}\n{thinking}\n{text}{summary}\n{again}\n"));
    assert_eq!(kinds(&transcript), [ProblemKind::GluedLine, ProblemKind::DuplicateLine]);
    assert_eq!(texts_of(&transcript), ["go", "*done"]);

    let synthetic = |uuid: &str, more: &str, text: &str| {
        let message = format!(
            r#"{{"model":"<synthetic>","id":"{uuid}","role":"assistant","content":[{{"type":"text","text":"{text}"}}]}}"#
        );
        line(uuid, &format!(r#","type":"assistant"{more}"#), &message)
    };
    let lines = [
        user,
        synthetic("e", r#","isApiErrorMessage":true"#, "Overloaded"),
        synthetic("n", r#","isApiErrorMessage":false"#, "No response requested."),
        text,
    ];
    let transcript = read(lines.join("\n") + "\n");
    assert_eq!(transcript.entries.len(), 4);
    assert_eq!(texts_of(&transcript), ["go", "No response requested.", "*done"]);
    let mut copy = Vec::new();
    transcript.convert(Format::PI, &mut copy).unwrap();
    let copy = read(copy);
    assert_eq!(copy.entries.len(), 4);
    assert_eq!(texts_of(&copy), ["go", "No response requested.", "*done"]);
}

#[test]
fn codex_usage_and_window() {
    let line = |kind: &str, payload: &str| {
        format!(r#"{{"timestamp":"2026-01-01T00:00:00Z","type":"{kind}","payload":{payload}}}"#)
    };
    let text = [
        line("session_meta", r#"{"id":"s"}"#),
        line("response_item", r#"{"type":"message","role":"user","content":"go"}"#),
        line(
            "response_item",
            r#"{"type":"function_call","name":"f","arguments":"{}","call_id":"c"}"#,
        ),
        line("response_item", r#"{"type":"function_call_output","call_id":"c","output":"o"}"#),
        line(
            "event_msg",
            r#"{"type":"token_count","info":{"last_token_usage":{"input_tokens":1000,"cached_input_tokens":100,"output_tokens":50,"total_tokens":1050},"model_context_window":272000}}"#,
        ),
    ];
    let transcript = read(text.join("\n") + "\n");
    assert_eq!(transcript.window, Some(272_000));
    let usage = transcript.main_line().unwrap()[1].entry.message().unwrap().meta.usage.unwrap();
    assert_eq!((usage.input, usage.cache_read, usage.output, usage.total()), (900, 100, 50, 1050));
}

#[test]
fn conversions_report_omissions() {
    let body = r#"{"model":"m","max_tokens":9,"system":"be kind","tools":[{"name":"now","description":"d","input_schema":{"type":"object"}}],"messages":[
      {"role":"user","content":[{"type":"text","text":"hi"}]},
      {"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"EqQB"},{"type":"tool_use","id":"c","name":"now","input":{}}]},
      {"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"noon"}]}]}"#;
    let original = read(body);
    let convert = |to: Format| {
        let mut out = Vec::new();
        let converted = original.convert(to, &mut out).unwrap();
        assert_eq!(converted.messages, 3);
        (read(out.clone()), converted.left_out.join("; "), String::from_utf8(out).unwrap())
    };
    let (_, left_out, text) = convert(Format::ANTHROPIC);
    assert_eq!(left_out, "");
    assert!(text.contains(r#""max_tokens":9"#) && text.contains(r#""model":"m""#));
    let (copy, left_out, text) = convert(Format::OPENAI_CHAT);
    assert!(left_out.contains("max_tokens") && left_out.contains("1 thinking block"), "{left_out}");
    assert!(text.contains(r#""parameters":{"type":"object"}"#), "{text}");
    assert_eq!(copy.system_prompt, original.system_prompt);
    let (copy, left_out, text) = convert(Format::PI);
    assert!(left_out.contains("max_tokens"));
    assert!(text.contains(r#""toolName":"now""#), "{text}");
    assert_eq!(copy.system_prompt, original.system_prompt);
    assert_eq!(copy.tools, original.tools);
    assert_eq!(copy.problems, []);
    assert_eq!(texts_of(&copy), texts_of(&original));

    let plain = read(r#"[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]"#);
    let mut out = Vec::new();
    plain.convert(Format::ANTHROPIC, &mut out).unwrap();
    assert_eq!(read(out).format, Format::ANTHROPIC);

    let branches = [user("a", "r").replace("\"r\"", "null"), user("b", "a"), user("c", "a")];
    let converted = read(session(&branches)).convert(Format::OPENAI_CHAT, &mut Vec::new()).unwrap();
    assert_eq!(converted.left_out[0], "1 message on other branches");
    assert_eq!(converted.left_out.len(), 2);
}

#[test]
fn ponybunny_is_converted_completely() {
    let text = "{messages:[{role:'system',content:'be kind'},{role:'user',content:'hi'},{role:'assistant',content:'x',thinkingBlocks:[{content:'deep'}]}],compactedHistory:[{role:'system',content:'long ago',compactedAt:1}]}";
    let transcript = read(text);
    let line = transcript.main_line().unwrap();
    let thinking = Block::Thinking { thinking: "deep".to_owned(), signature: None };
    assert!(line[1].entry.message().unwrap().blocks.contains(&thinking));
    assert_eq!(transcript.system_prompt.as_deref(), Some("be kind"));
    let mut out = Vec::new();
    transcript.convert(Format::OPENAI_CHAT, &mut out).unwrap();
    let out = String::from_utf8(out).unwrap();
    assert!(out.find("be kind").unwrap() < out.find("long ago").unwrap());
    let image = r#"[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk="}}]}]"#;
    let mut out = Vec::new();
    let converted = read(image).convert(Format::PONYBUNNY, &mut out).unwrap();
    assert!(String::from_utf8(out).unwrap().contains("[image: image/png]"));
    assert_eq!(converted.left_out, ["1 image replaced by a note"]);
}

#[test]
fn a_full_check() {
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let result = r#"{"role":"toolResult","toolCallId":"c","content":[],"timestamp":1}"#;
    let lines = [
        pi("a", "null", r#"{"role":"user","content":"\ud800 x","timestamp":-5}"#),
        pi(
            "b",
            "\"a\"",
            r#"{"role":"assistant","content":[{"type":"toolCall","id":"c","name":"f","arguments":{}}],"usage":{"input":-1}}"#,
        ),
        pi("c", "\"b\"", result),
        pi("d", "\"c\"", result),
        pi("e", "\"b\"", r#"{"role":"user","content":"x"}"#),
        pi("e2", "\"e\"", result),
        pi("f", "\"e2\"", &result.replace("\"c\"", "\"lost\"")),
        pi("g", "\"f\"", r#"{"role":"oracle","content":[{"type":"vision"}]}"#),
        format!(
            r#"{{"type":"hologram","id":"h","parentId":"g","timestamp":"soon","data":{deep}}}"#
        ),
    ];
    let transcript = read(session(&lines));
    assert_eq!(transcript.problems, []);
    let found = transcript.inspect().unwrap();
    let brief: Vec<_> = found
        .iter()
        .map(|p| format!("{} {}", p.entry.as_deref().unwrap(), p.kind.name()))
        .collect();
    expect![[r#"
        a loneSurrogate
        a badTimestamp
        b badUsage
        d duplicateResult
        f orphanResult
        g unknownRole
        g unknownBlock
        h deepNesting
        h badTimestamp
        h unknownEntry"#]]
    .assert_eq(&brief.join("\n"));
    assert!(found.iter().all(|p| p.severity == Severity::Carried && p.line.is_some()));
    assert_eq!(ProblemKind::CorruptLine.severity(), Severity::Repaired);
}

#[test]
fn files_that_are_not_transcripts_are_refused_with_a_hint() {
    let utf16: Vec<u8> =
        "[{\"role\":\"user\"}]".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let marked: Vec<u8> = [&b"\xFF\xFE"[..], &utf16].concat();
    for bytes in [utf16, marked] {
        let error = Transcript::from_bytes(bytes).map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnknownFormat);
        assert!(error.to_string().contains("UTF-16") && error.hint_text().is_some());
    }
    // Endless streams.
    let endless: [Box<dyn std::io::Read>; 2] =
        [Box::new(std::io::repeat(0)), Box::new(std::io::repeat(b'y'))];
    for stream in endless {
        let error = Transcript::from_reader(stream).map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnknownFormat);
        assert!(error.hint_text().is_some());
    }
    let error = Transcript::open(std::path::Path::new("/absent/session.jsonl")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.hint_text().is_some());
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(!error.to_string().contains(&cause));
    assert_eq!(error.to_string().matches("/absent/session.jsonl").count(), 1);
}
