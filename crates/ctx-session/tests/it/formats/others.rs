//! Transcripts of other agents and request bodies of providers.

use std::sync::Arc;

use ctx_core::Entry;
use ctx_session::{EntryKind, Format, Transcript};
use expect_test::expect;

use super::{context, line, read};

#[test]
fn claude_code() {
    let base = |uuid: &str, more: &str| {
        format!(
            r#"{{"parentUuid":null,"sessionId":"s","cwd":"/w","timestamp":"2026-01-01T00:00:00Z","uuid":"{uuid}",{more}}}"#
        )
    };
    let user = |uuid: &str, text: &str, more: &str| {
        base(
            uuid,
            &format!(
                r#""type":"user","isSidechain":false{more},"message":{{"role":"user","content":"{text}"}}"#
            ),
        )
    };
    let part = |uuid: &str, id: &str, block: &str, more: &str| {
        base(
            uuid,
            &format!(
                r#""type":"assistant"{more},"message":{{"model":"opus","id":"{id}","role":"assistant","content":[{block}],"usage":{{"input_tokens":5,"output_tokens":1}}}}"#
            ),
        )
    };
    let result = |uuid: &str, call: &str| {
        base(
            uuid,
            &format!(
                r#""type":"user","message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"{call}","content":"done"}}]}}"#
            ),
        )
    };
    let text = [
        r#"{"type":"summary","summary":"A title","leafUuid":"x"}"#.to_owned(),
        user("u1", "go", ""),
        part("a1", "m1", r#"{"type":"thinking","thinking":"hm","signature":"s"}"#, ""),
        part("a2", "m1", r#"{"type":"tool_use","id":"t1","name":"ls","input":{}}"#, ""),
        result("r1", "t1"),
        part("a3", "m1", r#"{"type":"tool_use","id":"t2","name":"ls","input":{}}"#, ""),
        result("r2", "t2"),
        user("side", "sub", "").replace("\"isSidechain\":false", "\"isSidechain\":true"),
        part("side2", "m9", r#"{"type":"text","text":"sub answer"}"#, r#","isSidechain":true"#)
            .replace("\"parentUuid\":null", "\"parentUuid\":\"side\""),
        base("p", r#""type":"progress","data":{}"#),
        base(
            "b",
            r#""type":"system","subtype":"compact_boundary","content":"Conversation compacted""#,
        ),
        user("c", "the summary", r#","isCompactSummary":true,"isVisibleInTranscriptOnly":true"#),
        user("v", "for people", r#","isVisibleInTranscriptOnly":true"#),
        user("meta", "caveat", r#","isMeta":true"#),
        part("a4", "m2", r#"{"type":"text","text":"ok"}"#, ""),
        part("a4", "m2", r#"{"type":"text","text":"ok"}"#, ""),
        part("a5", "m3", r#"{"type":"text","text":"API Error"}"#, "")
            .replace("opus", "<synthetic>"),
    ]
    .join("\n");
    let transcript = read(&(text + "\n"));
    assert_eq!(transcript.format, Format::CLAUDE_CODE);
    assert_eq!(transcript.name.as_deref(), Some("A title"));
    expect![[r#"
        user: go
        *assistant: (hm) ls#t1{} ls#t2{}
        toolResult: #t1=done
        toolResult: #t2=done
        user: caveat
        *assistant: ok"#]]
    .assert_eq(&line(&transcript).join("\n"));
    let found = transcript.context(None).unwrap();
    let expected = ["compactionSummary: the summary", "user: caveat", "assistant: ok"];
    assert_eq!(context(&found), expected);
    assert_eq!(found.model, Some(("anthropic".to_owned(), "opus".to_owned())));
    assert_eq!(transcript.problems.len(), 1);
    let stats = transcript.stats().unwrap();
    assert_eq!((stats.messages, stats.tool_results), (10, 2));
    let side = transcript.find("side2").unwrap();
    let items = transcript.messages_to(Some(&side)).unwrap();
    assert_eq!(
        items.iter().map(|i| i.entry.id().to_string()).collect::<Vec<_>>(),
        ["side", "side2"]
    );
    assert_eq!(&**transcript.leaf().unwrap(), "a5");
}

#[test]
fn codex() {
    let item = |payload: &str| {
        format!(
            r#"{{"timestamp":"2026-01-01T00:00:00Z","type":"response_item","payload":{payload}}}"#
        )
    };
    let text = [
        r#"{"timestamp":"2026-01-01T00:00:00Z","type":"session_meta","payload":{"id":"s","timestamp":"2026-01-01T00:00:00Z","cwd":"/w","instructions":"be codex","model_provider":"openai"}}"#.to_owned(),
        r#"{"timestamp":"2026-01-01T00:00:00Z","type":"turn_context","payload":{"model":"gpt-5"}}"#.to_owned(),
        item(r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"go"}]}"#),
        item(r#"{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"zz"}"#),
        item(r#"{"type":"function_call","name":"sh","arguments":"{\"c\":1}","call_id":"f1"}"#),
        r#"{"timestamp":"2026-01-01T00:00:00Z","type":"event_msg","payload":{"type":"token_count"}}"#.to_owned(),
        item(r#"{"type":"function_call","name":"sh","arguments":"{}","call_id":"f2"}"#),
        item(r#"{"type":"function_call_output","call_id":"f1","output":"one"}"#),
        item(r#"{"type":"function_call_output","call_id":"f2","output":{"content":"two","success":false}}"#),
        item(r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"done"}]}"#),
        item(r#"{"type":"ghost_snapshot","ghost_commit":{}}"#),
        r#"{"timestamp":"2026-01-01T00:00:00Z","type":"compacted","payload":{"message":"sum"}}"#.to_owned(),
        item(r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"more"}]}"#),
    ];
    let transcript = read(&(text.join("\n") + "\n"));
    assert_eq!(transcript.format, Format::CODEX);
    assert_eq!(transcript.problems, []);
    assert_eq!(transcript.system_prompt.as_deref(), Some("be codex"));
    expect![[r#"
        user: go
        *assistant: (hm) sh#f1{"c":1} sh#f2{}
        toolResult: #f1=one
        toolResult: #f2=two
        *assistant: done
        user: more"#]]
    .assert_eq(&line(&transcript).join("\n"));
    let found = transcript.context(None).unwrap();
    assert_eq!(context(&found), ["compactionSummary: sum", "user: more"]);
    assert_eq!(found.model, Some(("openai".to_owned(), "gpt-5".to_owned())));
    let replaced = text.join("\n").replace(
        r#"{"message":"sum"}"#,
        r#"{"message":"","replacement_history":[{"type":"message","role":"user","content":[{"type":"input_text","text":"again"}]}]}"#,
    );
    let found = read(&replaced).context(None).unwrap();
    assert_eq!(context(&found), ["user: again", "user: more"]);
}

#[test]
fn openai_chat() {
    let messages = r#"[
      {"role":"system","content":"be kind"},
      {"role":"user","content":"hi"},
      {"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"now","arguments":"{}"}}]},
      {"role":"tool","tool_call_id":"c","content":"noon"},
      {"role":"assistant","content":"noon it is"}]"#;
    let expected =
        ["user: hi", "*assistant: now#c{}", "toolResult: #c=noon", "*assistant: noon it is"];
    let transcript = read(messages);
    assert_eq!(transcript.format, Format::OPENAI_CHAT);
    assert_eq!(line(&transcript), expected);
    assert_eq!(transcript.system_prompt.as_deref(), Some("be kind"));
    assert_eq!(transcript.entries[0].kind, EntryKind::SystemPrompt);
    assert_eq!(&*transcript.entries[1].id, "00000001");
    assert_eq!(transcript.stats().unwrap().tool_results, 1);
    let body =
        format!(r#"{{"model":"gpt","tools":[{{"type":"function"}}],"messages":{messages}}}"#);
    let transcript = read(&body);
    assert_eq!(line(&transcript), expected);
    assert_eq!(transcript.tools.as_deref(), Some(r#"[{"type":"function"}]"#));
    assert_eq!(transcript.model().unwrap().unwrap().1, "gpt");
    let torn = &messages[..messages.len() - 30];
    let transcript = read(torn);
    assert_eq!(line(&transcript), expected[..3]);
    assert_eq!(transcript.problems.len(), 1);
    let lines =
        "{\"role\":\"user\",\"content\":\"a\"}\n{\"role\":\"assistant\",\"content\":\"b\"}\n";
    assert_eq!(line(&read(lines)), ["user: a", "*assistant: b"]);
}

#[test]
fn anthropic() {
    let body = r#"{"model":"opus","system":[{"type":"text","text":"be kind"}],"tools":[{"name":"now","input_schema":{}}],"messages":[
      {"role":"user","content":"hi"},
      {"role":"assistant","content":[{"type":"text","text":"let me see"},{"type":"tool_use","id":"t","name":"now","input":{"z":1.50}}]},
      {"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"noon"}]},{"type":"text","text":"and?"}]}]}"#;
    let transcript = read(body);
    assert_eq!(transcript.format, Format::ANTHROPIC);
    let expected = ["user: hi", r#"*assistant: let me see now#t{"z":1.50}"#, "user: #t=noon and?"];
    assert_eq!(line(&transcript), expected);
    assert_eq!(transcript.system_prompt.as_deref(), Some("be kind"));
    assert!(transcript.tools.as_deref().unwrap().contains("input_schema"));
    assert_eq!(transcript.stats().unwrap().tool_results, 1);
}

#[test]
fn ponybunny() {
    let text = r#"{
      // written by hand
      messages: [
        { role: 'user', content: 'hi', timestamp: 1704067200000 },
        { role: 'assistant', content: 'see', thinkingBlocks: [{ type: 'thinking', thinking: 'hm' }],
          toolCalls: [{ id: 'c', name: 'now', arguments: { tz: 1 } }], usage: { input: 3, output: 4 }, },
        { role: 'tool', toolCallId: 'c', content: 'noon' },
      ],
      compactedHistory: [{ role: 'system', content: '[Summary] long ago', compactedAt: 1704060000000 }],
    }"#;
    let transcript = read(text);
    assert_eq!(transcript.format, Format::PONYBUNNY);
    assert_eq!(transcript.problems, []);
    let expected = ["user: hi", r#"*assistant: (hm) see now#c{"tz":1}"#, "toolResult: #c=noon"];
    assert_eq!(line(&transcript), expected);
    let found = transcript.context(None).unwrap();
    assert_eq!(context(&found)[0], "compactionSummary: [Summary] long ago");
    assert_eq!(found.entries.len(), 4);
    let usage = found.entries[2].message().unwrap().meta.usage.unwrap();
    assert_eq!((usage.input, usage.output), (3, 4));
    assert_eq!(found.entries[1].timestamp().unwrap().0, 1_704_067_200_000);
}

#[test]
fn a_collection_of_chats_is_read_as_one() {
    let said = |role: &str, text: &str| format!(r#"{{"role":"{role}","id":7,"content":"{text}"}}"#);
    let (a, b, c) = (said("user", "one"), said("assistant", "two"), said("user", "three"));
    for text in [
        format!("[{a},{b},{c}]"),
        format!("[[{a},{b}],[{c}]]"),
        format!(r#"[{{"batch_number":1,"turns":[[{a},{b}],[{c}]]}}]"#),
        format!(r#"[{{"messages":[{a}]}},{{"messages":[{b},{c}]}}]"#),
    ] {
        let transcript = read(&text);
        assert_eq!(transcript.format, Format::OPENAI_CHAT, "{text}");
        assert_eq!(line(&transcript), ["user: one", "*assistant: two", "user: three"], "{text}");
    }
}

/// A Gemini CLI chat: an answer that is repeated with its call, one that was rewound, and a notice
/// to the user.
const GEMINI: [&str; 11] = [
    r#"{"sessionId":"7bc8a9ca","projectHash":"0939","startTime":"2026-11-22T17:16:57.650Z","kind":"main"}"#,
    r#"{"$set":{"messages":[{"id":"c0","timestamp":"2026-11-22T17:16:57.651Z","type":"user","content":[{"text":"context"}]}],"lastUpdated":"x"}}"#,
    r#"{"id":"u1","timestamp":"2026-11-22T17:16:57.711Z","type":"user","content":[{"text":"read note.txt"}]}"#,
    r#"{"id":"g1","timestamp":"2026-11-22T17:16:58.062Z","type":"gemini","content":"Reading.","thoughts":[{"subject":"Plan","description":"read it"}],"tokens":{"input":5986,"output":8,"cached":0,"thoughts":0,"tool":0,"total":5994},"model":"gemini-2.5-flash"}"#,
    r#"{"id":"g1","timestamp":"2026-11-22T17:16:58.062Z","type":"gemini","content":"Reading.","thoughts":[{"subject":"Plan","description":"read it"}],"tokens":{"input":5986,"output":8,"cached":0,"thoughts":0,"tool":0,"total":5994},"model":"gemini-2.5-flash","toolCalls":[{"id":"call1","name":"read_file","args":{"file_path":"note.txt"},"result":[{"functionResponse":{"id":"call1","name":"read_file","response":{"output":"MANGO\n"}}}],"status":"success"}]}"#,
    r#"{"id":"g2","timestamp":"2026-11-22T17:16:58.140Z","type":"gemini","content":"MANGO","tokens":{"input":6012,"output":12,"cached":5986,"thoughts":3,"total":6024},"model":"gemini-2.5-flash"}"#,
    r#"{"id":"i1","timestamp":"2026-11-22T17:16:59Z","type":"info","content":"Request cancelled."}"#,
    r#"{"id":"u2","timestamp":"2026-11-22T17:17:00Z","type":"user","content":[{"text":"never mind"}]}"#,
    r#"{"id":"g3","timestamp":"2026-11-22T17:17:01Z","type":"gemini","content":"fine","tokens":{"input":6030,"output":1,"cached":6012,"total":6031},"model":"gemini-2.5-flash"}"#,
    r#"{"$rewindTo":"u2"}"#,
    r#"{"$set":{"lastUpdated":"2026-11-22T17:17:03Z"}}"#,
];

#[test]
fn gemini_cli() {
    let whole = GEMINI.join("\n") + "\n";
    let messages = |text: &str| {
        let transcript = read(text);
        assert_eq!(transcript.format, Format::GEMINI_CLI);
        assert_eq!(transcript.header.id.as_deref(), Some("7bc8a9ca"));
        let items = transcript.main_line().unwrap();
        let rows = items.iter().map(|item| {
            let message = item.entry.message().unwrap();
            let prompt = message.meta.usage.map_or(0, |usage| usage.prompt());
            let (calls, results) = (message.tool_calls().count(), message.tool_results().count());
            (message.role.name().to_owned(), message.plain_text(), prompt, calls, results)
        });
        (rows.collect::<Vec<_>>(), transcript.problems.len())
    };
    let row = |role: &str, text: &str, prompt, calls, results| {
        (role.to_owned(), text.to_owned(), prompt, calls, results)
    };
    let expected = [
        row("user", "context", 0, 0, 0),
        row("user", "read note.txt", 0, 0, 0),
        row("assistant", "Reading.", 5986, 1, 0),
        row("toolResult", "", 0, 0, 1),
        row("assistant", "MANGO", 6012, 0, 0),
    ];
    assert_eq!(messages(&whole), (expected.to_vec(), 0));
    // The result is also in its own message.
    let result = r#"{"id":"r1","timestamp":"2026-11-22T17:16:58.109Z","type":"user","content":[{"functionResponse":{"id":"call1","name":"read_file","response":{"output":"MANGO\n"}}}]}"#;
    let mut lines = GEMINI.to_vec();
    lines.insert(5, result);
    assert_eq!(messages(&lines.join("\n")).0, expected);
    // The older format is one document.
    let list: Vec<_> = GEMINI[2..3].iter().chain(&GEMINI[4..7]).copied().collect();
    let document = format!(
        "{{\n  \"sessionId\": \"7bc8a9ca\",\n  \"projectHash\": \"0939\",\n  \"messages\": [\n{}\n]\n}}\n",
        list.join(",\n")
    );
    assert_eq!(messages(&document).0, expected[1..]);
    // An incomplete last line is reported and has no other effect.
    let torn = &whole[..whole.len() - 20];
    assert_eq!(messages(torn), (expected.to_vec(), 1));
    let transcript = read(&whole);
    let model = transcript.model().unwrap();
    assert_eq!(model, Some(("google".to_owned(), "gemini-2.5-flash".to_owned())));
    let mut copy = Vec::new();
    transcript.convert(Format::OPENAI_CHAT, &mut copy).unwrap();
    assert!(String::from_utf8_lossy(&copy).contains("MANGO"));
    assert!(transcript.convert(Format::GEMINI_CLI, &mut copy).is_err());
}

/// Gemini CLI compresses by writing a list that begins with a snapshot, and writes the list again when
/// the chat is resumed and after tools.
#[test]
fn gemini_cli_compressions_are_compactions() {
    let message = |id: &str, kind: &str, text: &str| {
        format!(
            r#"{{"id":"{id}","timestamp":"2026-11-22T17:16:57Z","type":"{kind}","content":[{{"text":"{text}"}}]}}"#
        )
    };
    let set = |list: &[&str]| format!(r#"{{"$set":{{"messages":[{}]}}}}"#, list.join(","));
    let head = GEMINI[0].to_owned();
    let about = message("d0", "user", "context");
    let snapshot = |id: &str| message(id, "user", "<state_snapshot>sum</state_snapshot>");
    let thanks = |id: &str| message(id, "gemini", "Got it. Thanks for the additional context!");
    let turn = |n: u32| {
        (
            message(&format!("u{n}"), "user", &format!("q{n}")),
            message(&format!("g{n}"), "gemini", &format!("a{n}")),
        )
    };
    let [(u1, g1), (u2, g2), (u3, g3), (u4, g4)] = [1, 2, 3, 4].map(turn);
    // The last turn is kept, with other ids.
    let (k2, l2) = (u2.replace("\"u2", "\"k2"), g2.replace("\"g2", "\"l2"));
    let lines = [
        head.clone(),
        set(&[&about]),
        u1,
        g1,
        u2,
        g2,
        set(&[&about, &snapshot("s1"), &thanks("t1"), &k2, &l2]),
        u3.clone(),
        g3.clone(),
        // Resumed.
        head,
        set(&[&about]),
        set(&[&about, &snapshot("s2"), &thanks("t2"), &k2, &l2, &u3, &g3]),
        u4,
        g4,
        // The same snapshot, of fewer messages.
        set(&[&about, &snapshot("s3"), &thanks("t3")]),
    ];
    let transcript = read(&lines.join("\n"));
    assert!(transcript.problems.is_empty(), "{:?}", transcript.problems);
    let texts = |entries: Vec<Arc<Entry>>| -> Vec<String> {
        entries.iter().map(|entry| entry.message().unwrap().plain_text()).collect()
    };
    let line = transcript.main_line().unwrap().into_iter().map(|item| item.entry).collect();
    let sum = "<state_snapshot>sum</state_snapshot>";
    let all = ["q1", "a1", "q2", "a2", "q3", "a3", "q4", "a4", "context"];
    assert_eq!(texts(line), all);
    assert_eq!(texts(transcript.context(None).unwrap().entries), [sum, "context"]);
    let list = transcript.compaction_list(None).unwrap();
    let ids: Vec<_> = list.iter().map(|compaction| &*compaction.id).collect();
    assert_eq!(ids, ["s1.summary", "s3.summary"]);
    let first = read(&lines[..9].join("\n")).context(None).unwrap();
    assert_eq!(texts(first.entries), [sum, "context", "q2", "a2", "q3", "a3"]);
}

#[test]
fn opencode() {
    let part =
        |fields: &str| format!(r#"{{"id":"p","sessionID":"ses_1","messageID":"m",{fields}}}"#);
    let message = |id: &str, info: &str, parts: &[String]| {
        let parts = parts.join(",");
        format!(
            r#"{{"info":{{"id":"{id}","time":{{"created":1795367875706}},{info}}},"parts":[{parts}]}}"#
        )
    };
    let answer = r#""role":"assistant","modelID":"claude","providerID":"anthropic","tokens":{"input":50,"output":38,"reasoning":2,"cache":{"read":2402,"write":7}}"#;
    let text = |text: &str| part(&format!(r#""type":"text","text":"{text}""#));
    let call = |state: &str| {
        part(&format!(
            r#""type":"tool","tool":"read","callID":"c1","state":{{"input":{{"filePath":"n"}},{state}}}"#
        ))
    };
    let messages = [
        message("m1", r#""role":"user""#, &[text("old")]),
        message(
            "m2",
            &format!(r#"{answer},"summary":true"#),
            &[part(r#""type":"step-start""#), text("the summary")],
        ),
        message(
            "m3",
            r#""role":"user""#,
            &[text("go"), part(r#""type":"text","text":"hidden","ignored":true"#)],
        ),
        message(
            "m4",
            answer,
            &[
                part(r#""type":"reasoning","text":"hm""#),
                call(r#""status":"completed","output":"done""#),
            ],
        ),
        message("m5", answer, &[call(r#""status":"error","error":"gone""#).replace("c1", "c2")]),
        message("m6", answer, &[text("ok"), call(r#""status":"running""#).replace("c1", "c3")]),
    ];
    let list = messages.join(",");
    let document = format!(
        "{{\n \"info\": {{\"id\":\"ses_1\",\"directory\":\"/w\"}},\n \"messages\": [{list}]\n}}\n"
    );
    let transcript = read(&document);
    assert_eq!(transcript.format, Format::OPENCODE);
    assert_eq!(
        (transcript.header.id.as_deref(), transcript.header.cwd.as_deref()),
        (Some("ses_1"), Some("/w"))
    );
    assert!(transcript.problems.is_empty(), "{:?}", transcript.problems);
    let marked = read(&format!("\u{FEFF}{document}"));
    assert_eq!(
        (marked.format, marked.header.id),
        (transcript.format, transcript.header.id.clone())
    );
    expect![[r#"
        compactionSummary: the summary
        user: go
        assistant: (hm) read#c1{"filePath":"n"}
        toolResult: #c1=done
        assistant: read#c2{"filePath":"n"}
        toolResult: #c2=gone
        assistant: ok read#c3{"filePath":"n"}"#]]
    .assert_eq(&context(&transcript.context(None).unwrap()).join("\n"));
    let usage = transcript.all_messages()[3].message().unwrap().meta.usage.unwrap();
    assert_eq!((usage.prompt(), usage.output), (2_459, 40));
}

#[test]
fn a_trajectory() {
    let text = r#"{"schema_version":"ATIF-v1.8","session_id":"run-7",
      "agent":{"name":"a","version":"1","model_name":"m-default","tool_definitions":[{"type":"function","function":{"name":"sh"}}]},
      "steps":[
        {"step_id":1,"source":"system","message":"be kind"},
        {"step_id":2,"source":"user","timestamp":"2026-01-02T03:04:05Z","message":[{"type":"text","text":"look"},{"type":"image","source":{"media_type":"image/png","path":"images/a.png"}}]},
        {"step_id":3,"source":"agent","model_name":"m-own","message":"I look.","reasoning_content":"hm",
         "tool_calls":[{"tool_call_id":"c1","function_name":"sh","arguments":{"cmd":"ls"}},{"tool_call_id":"c2","function_name":"sh","arguments":{}}],
         "observation":{"results":[{"source_call_id":"c2","content":"two","extra":{"is_error":true}},{"source_call_id":"c1","content":[{"type":"text","text":"one"}]},{"content":"a note"}]},
         "metrics":{"prompt_tokens":100,"completion_tokens":7,"cached_tokens":60}},
        {"step_id":4,"source":"agent","message":"","tool_calls":[{"tool_call_id":"c3","function_name":"sh","arguments":{}}],
         "observation":{"results":[{"content":"alone"}]}}]}"#;
    let transcript = read(text);
    assert_eq!(transcript.format, Format::ATIF);
    assert_eq!(transcript.problems, []);
    assert_eq!(transcript.system_prompt.as_deref(), Some("be kind"));
    assert!(transcript.tools.as_deref().unwrap().contains("sh"));
    let messages = transcript.context(None).unwrap().entries;
    let messages: Vec<_> = messages.iter().map(|entry| entry.message().unwrap()).collect();
    let roles: Vec<_> = messages.iter().map(|message| message.role.name()).collect();
    assert_eq!(
        roles,
        ["user", "assistant", "toolResult", "toolResult", "user", "assistant", "toolResult"]
    );
    assert_eq!(messages[0].meta.timestamp.unwrap().0, 1_767_323_045_000);
    let answer = &messages[1];
    assert_eq!((answer.meta.model.as_deref(), answer.blocks.len()), (Some("m-own"), 4));
    let usage = answer.meta.usage.unwrap();
    assert_eq!((usage.input, usage.cache_read, usage.output), (40, 60, 7));
    let result = |n: usize| messages[n].tool_results().next().unwrap();
    assert_eq!((&*result(2).call_id, result(2).is_error), ("c2", true));
    assert_eq!((&*result(3).call_id, &*result(3).plain_text()), ("c1", "one"));
    assert_eq!(messages[4].plain_text(), "a note");
    assert_eq!((&*result(6).call_id, messages[5].meta.model.as_deref()), ("c3", Some("m-default")));
    // A conversion keeps all of it.
    let mut out = Vec::new();
    transcript.convert(Format::ATIF, &mut out).unwrap();
    let copy = Transcript::from_bytes(out).unwrap();
    let copied: Vec<_> = copy.context(None).unwrap().entries;
    let copied: Vec<_> = copied.iter().map(|entry| entry.message().unwrap()).collect();
    assert_eq!(copied, messages);
}
