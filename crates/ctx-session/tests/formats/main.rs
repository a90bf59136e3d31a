//! What each format says, on small samples.

#![allow(clippy::unwrap_used)] // A test; the lint only knows those inside of `#[test]`.

use ctx_core::{Block, Role};
use ctx_session::{EntryKind, Format, SessionContext, Transcript};

fn read(text: &str) -> Transcript {
    Transcript::from_bytes(text.as_bytes().to_vec()).unwrap()
}

/// The messages of the main line: role, text, and `*` if a model was asked for it.
fn line(transcript: &Transcript) -> Vec<String> {
    let line = transcript.main_line().unwrap();
    line.iter()
        .map(|item| {
            let star = if item.request { "*" } else { "" };
            format!("{star}{}", brief(&item.entry.message().unwrap()))
        })
        .collect()
}

fn context(context: &SessionContext) -> Vec<String> {
    context.entries.iter().map(|entry| brief(&entry.message().unwrap())).collect()
}

fn brief(message: &ctx_core::Message) -> String {
    let blocks = message.blocks.iter().map(|block| match block {
        Block::Text { text } => text.clone(),
        Block::Thinking { thinking, .. } => format!("({thinking})"),
        Block::ToolCall(call) => format!("{}#{}{}", call.name, call.id, call.arguments.as_str()),
        Block::ToolResult(result) => {
            let text = result.content.iter().map(|b| match b {
                Block::Text { text } => text.clone(),
                other => format!("{other:?}"),
            });
            format!("#{}={}", result.call_id, text.collect::<String>())
        }
        other => format!("{other:?}"),
    });
    format!("{}: {}", message.role, blocks.collect::<Vec<_>>().join(" "))
}

/// A pi v3 session of these entries, each on the one before it unless it names its parent.
fn pi(entries: &[&str]) -> String {
    let mut text = r#"{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w","parentSession":"/p.jsonl"}"#.to_owned();
    for entry in entries {
        text.push('\n');
        text.push_str(&entry.replacen('{', r#"{"timestamp":"2026-01-01T00:00:01.000Z","#, 1));
    }
    text + "\n"
}

fn user(id: &str, parent: &str) -> String {
    format!(
        r#"{{"type":"message","id":"{id}","parentId":{parent},"message":{{"role":"user","content":"{id}"}}}}"#
    )
}

#[test]
fn pi_entries() {
    let text = pi(&[
        &user("a", "null"),
        r#"{"type":"thinking_level_change","id":"b","parentId":"a","thinkingLevel":"high"}"#,
        r#"{"type":"model_change","id":"c","parentId":"b","provider":"p","modelId":"m"}"#,
        r#"{"type":"custom_message","id":"d","parentId":"c","customType":"x","content":"note","display":true}"#,
        r#"{"type":"custom","id":"e","parentId":"d","customType":"x","data":{"k":1}}"#,
        r#"{"type":"branch_summary","id":"f","parentId":"e","fromId":"a","summary":"left"}"#,
        r#"{"type":"branch_summary","id":"g","parentId":"f","fromId":"a","summary":""}"#,
        r#"{"type":"label","id":"h","parentId":"g","targetId":"a","label":"start"}"#,
        r#"{"type":"label","id":"i","parentId":"h","targetId":"d","label":"x"}"#,
        r#"{"type":"label","id":"j","parentId":"i","targetId":"d","label":""}"#,
        r#"{"type":"session_info","id":"k","parentId":"j","name":" My session "}"#,
        r#"{"type":"usage","id":"l","parentId":"k","kind":"cache_warm","usage":{}}"#,
    ]);
    let transcript = read(&text);
    assert_eq!(transcript.problems(), []);
    assert_eq!(line(&transcript), ["user: a", "custom: note", "branchSummary: left"]);
    let found = transcript.context(None).unwrap();
    assert_eq!(context(&found), ["user: a", "custom: note", "branchSummary: left"]);
    assert_eq!(found.thinking_level, "high");
    assert_eq!(found.model, Some(("p".to_owned(), "m".to_owned())));
    assert_eq!(transcript.labels().into_iter().collect::<Vec<_>>(), [("a".into(), "start".into())]);
    assert_eq!(transcript.name(), Some("My session"));
    assert_eq!(&**transcript.leaf().unwrap(), "l");
    let header = transcript.header();
    assert_eq!(header.parent_session.as_deref(), Some("/p.jsonl"));
    assert_eq!((header.id.as_deref(), header.cwd.as_deref()), (Some("s"), Some("/w")));
}

#[test]
fn pi_branches_and_the_leaf() {
    let text = pi(&[
        &user("a", "null"),
        &user("b", "\"a\""),
        &user("c", "\"a\""),
        &user("d", "\"c\""),
        r#"{"type":"leaf","id":"e","parentId":"d","targetId":"b"}"#,
    ]);
    let transcript = read(&text);
    assert_eq!(line(&transcript), ["user: a", "user: b"]);
    assert_eq!(transcript.roots(), [0]);
    assert_eq!(transcript.children(0), [1, 2]);
    assert_eq!(transcript.tips(), [1, 4]);
    let d = transcript.find("d").unwrap();
    assert_eq!(transcript.path(Some(&d)).unwrap(), [0, 2, 3]);
    assert!(transcript.path(Some(&"zz".into())).is_err());
    let empty = read(&pi(&[
        &user("a", "null"),
        r#"{"type":"leaf","id":"e","parentId":"a","targetId":null}"#,
    ]));
    assert!(empty.leaf().is_none() && empty.main_line().unwrap().is_empty());
}

#[test]
fn pi_compactions() {
    let compaction = |id: &str, parent: &str, kept: &str, more: &str| {
        format!(
            r#"{{"type":"compaction","id":"{id}","parentId":"{parent}","summary":"sum {id}","firstKeptEntryId":"{kept}","tokensBefore":9{more}}}"#
        )
    };
    let (a, b, c) = (user("a", "null"), user("b", "\"a\""), user("c", "\"b\""));
    let d = compaction("d", "c", "b", "");
    let e = user("e", "\"d\"");
    let transcript = read(&pi(&[&a, &b, &c, &d, &e]));
    let found = transcript.context(None).unwrap();
    assert_eq!(context(&found), ["compactionSummary: sum d", "user: b", "user: c", "user: e"]);
    assert_eq!(found.compaction.as_deref(), Some("d"));
    assert_eq!(found.entries[0].message().unwrap().meta.tokens_before, Some(9));
    assert_eq!(line(&transcript), ["user: a", "user: b", "user: c", "user: e"]);
    // One that names itself keeps nothing, and brings its own prompt; the last one wins.
    let system =
        r#"{"type":"message","id":"f","parentId":"e","message":{"role":"system","content":"old"}}"#;
    let g = compaction("g", "f", "g", r#","systemMessage":{"role":"system","content":"new"}"#);
    let h = user("h", "\"g\"");
    let text = pi(&[&a, &b, &c, &d, &e, system, &g, &h]);
    let found = read(&text).context(None).unwrap();
    assert_eq!(context(&found), ["system: new", "compactionSummary: sum g", "user: h"]);
    let kept = text.replace(r#""firstKeptEntryId":"g""#, r#""firstKeptEntryId":"e""#);
    let found = read(&kept).context(None).unwrap();
    assert_eq!(context(&found), ["system: new", "compactionSummary: sum g", "user: e", "user: h"]);
    // Undone: the branch reads as if it were not there, later turns included.
    let undo = r#"{"type":"custom","id":"u","parentId":"h","customType":"ctx.undo","data":{"targetId":"g"}}"#;
    let transcript = read(&pi(&[&a, &b, &c, &d, &e, system, &g, &h, undo]));
    let found = transcript.context(None).unwrap();
    assert_eq!(found.compaction.as_deref(), Some("d"));
    assert_eq!(found.entries.len(), 6);
    assert_eq!(transcript.compactions().unwrap(), 1);
}

#[test]
fn pi_context_edits() {
    let result = r#"{"type":"message","id":"r","parentId":"a","message":{"role":"toolResult","toolCallId":"c","toolName":"t","content":[{"type":"text","text":"long"}],"isError":false}}"#;
    let edit = |id: &str, parent: &str, target: &str, replacement: &str| {
        format!(
            r#"{{"type":"context_edit","id":"{id}","parentId":"{parent}","targetId":"{target}","replacement":{replacement}}}"#
        )
    };
    let first = edit("x", "r", "r", "null");
    let second = edit("y", "x", "r", r#"{"content":[{"type":"text","text":"short"}]}"#);
    let third = edit("z", "y", "a", "null");
    let transcript = read(&pi(&[&user("a", "null"), result, &first, &second, &third]));
    assert_eq!(context(&transcript.context(None).unwrap()), ["toolResult: #c=short"]);
    let at = |id: &str| transcript.context(transcript.find(id).as_ref()).unwrap();
    assert_eq!(context(&at("r")), ["user: a", "toolResult: #c=long"]);
    assert_eq!(context(&at("x")), ["user: a"]);
    assert_eq!(line(&transcript), ["user: a", "toolResult: #c=long"]);
}

#[test]
fn pi_v1_and_v2() {
    let v1 = [
        r#"{"type":"session","id":"s","timestamp":"2025-01-01T00:00:00.000Z","cwd":"/"}"#,
        r#"{"type":"message","message":{"role":"user","content":"one"}}"#,
        r#"{"type":"message","message":{"role":"hookMessage","customType":"h","content":"two"}}"#,
        r#"{"type":"compaction","summary":"sum","firstKeptEntryIndex":2,"tokensBefore":1}"#,
        r#"{"type":"message","message":{"role":"user","content":"three"}}"#,
    ];
    let transcript = read(&v1.join("\n"));
    let ids: Vec<_> = transcript.entries().iter().map(|e| e.id().to_string()).collect();
    assert_eq!(ids, ["00000000", "00000001", "00000002", "00000003"]);
    let expected = ["compactionSummary: sum", "custom: two", "user: three"];
    assert_eq!(context(&transcript.context(None).unwrap()), expected);
    let mut copy = Vec::new();
    transcript.convert(Format::Pi, &mut copy).unwrap();
    let copy = String::from_utf8(copy).unwrap();
    assert!(copy.contains(r#""firstKeptEntryId":"00000001""#) && !copy.contains("hookMessage"));
    let migrated = read(&copy);
    assert_eq!(migrated.header().version, Some(3));
    assert_eq!(migrated.problems(), []);
    assert_eq!(context(&migrated.context(None).unwrap()), expected);
    let v2 =
        pi(&[&user("a", "null"), &user("b", "\"a\"")]).replace("\"version\":3", "\"version\":2");
    assert_eq!(line(&read(&v2)), ["user: a", "user: b"]);
}

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
    assert_eq!(transcript.format(), Format::ClaudeCode);
    assert_eq!(transcript.name(), Some("A title"));
    assert_eq!(
        line(&transcript),
        [
            "user: go",
            "*assistant: (hm) ls#t1{} ls#t2{}",
            "toolResult: #t1=done",
            "toolResult: #t2=done",
            "user: caveat",
            "*assistant: ok",
        ]
    );
    let found = transcript.context(None).unwrap();
    let expected = ["compactionSummary: the summary", "user: caveat", "assistant: ok"];
    assert_eq!(context(&found), expected);
    assert_eq!(found.model, Some(("anthropic".to_owned(), "opus".to_owned())));
    assert_eq!(transcript.problems().len(), 1);
    let stats = transcript.stats().unwrap();
    assert_eq!((stats.messages, stats.tool_results), (10, 2));
    let side = transcript.find("side2").unwrap();
    let items = transcript.line_to(Some(&side)).unwrap();
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
    assert_eq!(transcript.format(), Format::Codex);
    assert_eq!(transcript.problems(), []);
    assert_eq!(transcript.system_prompt().unwrap().as_deref(), Some("be codex"));
    assert_eq!(
        line(&transcript),
        [
            "user: go",
            r#"*assistant: (hm) sh#f1{"c":1} sh#f2{}"#,
            "toolResult: #f1=one",
            "toolResult: #f2=two",
            "*assistant: done",
            "user: more",
        ]
    );
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
    assert_eq!(transcript.format(), Format::OpenAiChat);
    assert_eq!(line(&transcript), expected);
    assert_eq!(transcript.system_prompt().unwrap().as_deref(), Some("be kind"));
    assert_eq!(transcript.entries()[0].kind(), &EntryKind::SystemPrompt);
    assert_eq!(&**transcript.entries()[1].id(), "00000001");
    assert_eq!(transcript.stats().unwrap().tool_results, 1);
    let body =
        format!(r#"{{"model":"gpt","tools":[{{"type":"function"}}],"messages":{messages}}}"#);
    let transcript = read(&body);
    assert_eq!(line(&transcript), expected);
    assert_eq!(transcript.tools().unwrap().as_deref(), Some(r#"[{"type":"function"}]"#));
    assert_eq!(transcript.model().unwrap().unwrap().1, "gpt");
    let torn = &messages[..messages.len() - 30];
    let transcript = read(torn);
    assert_eq!(line(&transcript), expected[..3]);
    assert_eq!(transcript.problems().len(), 1);
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
    assert_eq!(transcript.format(), Format::Anthropic);
    let expected = ["user: hi", r#"*assistant: let me see now#t{"z":1.50}"#, "user: #t=noon and?"];
    assert_eq!(line(&transcript), expected);
    assert_eq!(transcript.system_prompt().unwrap().as_deref(), Some("be kind"));
    assert!(transcript.tools().unwrap().unwrap().contains("input_schema"));
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
    assert_eq!(transcript.format(), Format::PonyBunny);
    assert_eq!(transcript.problems(), []);
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
fn conversions_keep_every_message() {
    let source = r#"[
      {"role":"system","content":"be kind"},
      {"role":"user","content":"hi"},
      {"role":"assistant","content":"see","tool_calls":[{"id":"c","type":"function","function":{"name":"now","arguments":"{\"a\":1.50}"}}]},
      {"role":"tool","tool_call_id":"c","content":"noon"},
      {"role":"assistant","content":"noon it is"}]"#;
    let original = read(source);
    for format in [Format::Pi, Format::OpenAiChat, Format::Anthropic, Format::PonyBunny] {
        let mut out = Vec::new();
        assert_eq!(original.convert(format, &mut out).unwrap().messages, 4);
        let copy = Transcript::from_bytes(out).unwrap();
        assert_eq!(copy.format(), format);
        assert_eq!(line(&copy), line(&original), "{format}");
        assert_eq!(copy.problems(), []);
        assert_eq!(copy.system_prompt().unwrap().as_deref(), Some("be kind"), "{format}");
    }
    assert!(original.convert(Format::Codex, &mut Vec::new()).is_err());
    let roles: Vec<_> = original.entries().iter().filter_map(|e| e.role().cloned()).collect();
    assert_eq!(roles[3], Role::ToolResult);
}

#[test]
fn a_pi_session_converts_byte_for_byte() {
    let text = pi(&[
        &user("a", "null"),
        r#"{"type":"compaction","id":"d","parentId":"a","summary":"sum","firstKeptEntryId":"d","x":1.50}"#,
        &user("b", "\"d\""),
    ]);
    let mut copy = Vec::new();
    read(&text).convert(Format::Pi, &mut copy).unwrap();
    assert_eq!(String::from_utf8(copy).unwrap(), text);
}

#[test]
fn a_torn_ponybunny_session() {
    let text = "{\n messages: [\n  {role: 'user', content: 'a'},\n  {role: 'assistant', content: 'b'},\n  {role: 'us";
    let transcript = read(text);
    assert_eq!(transcript.format(), Format::PonyBunny);
    assert_eq!(line(&transcript), ["user: a", "*assistant: b"]);
    assert_eq!(transcript.problems().len(), 1);
}
