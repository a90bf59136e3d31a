//! Converting transcripts to other formats.

use ctx_core::Role;
use ctx_session::{Format, Transcript};

use super::{line, pi, read, user};

#[test]
fn conversions_keep_every_message() {
    let source = r#"[
      {"role":"system","content":"be kind"},
      {"role":"user","content":"hi"},
      {"role":"assistant","content":"see","tool_calls":[{"id":"c","type":"function","function":{"name":"now","arguments":"{\"a\":1.50}"}}]},
      {"role":"tool","tool_call_id":"c","content":"noon"},
      {"role":"assistant","content":"noon it is"}]"#;
    let original = read(source);
    for format in
        [Format::PI, Format::OPENAI_CHAT, Format::ANTHROPIC, Format::ATIF, Format::PONYBUNNY]
    {
        let mut out = Vec::new();
        assert_eq!(original.convert(format, &mut out).unwrap().messages, 4);
        let copy = Transcript::from_bytes(out).unwrap();
        assert_eq!(copy.format, format);
        assert_eq!(line(&copy), line(&original), "{format}");
        assert_eq!(copy.problems, []);
        assert_eq!(copy.system_prompt.as_deref(), Some("be kind"), "{format}");
    }
    assert!(original.convert(Format::CODEX, &mut Vec::new()).is_err());
    let roles: Vec<_> = original.entries.iter().filter_map(|e| e.role.clone()).collect();
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
    read(&text).convert(Format::PI, &mut copy).unwrap();
    assert_eq!(String::from_utf8(copy).unwrap(), text);
}

#[test]
fn a_torn_ponybunny_session() {
    let text = "{\n messages: [\n  {role: 'user', content: 'a'},\n  {role: 'assistant', content: 'b'},\n  {role: 'us";
    let transcript = read(text);
    assert_eq!(transcript.format, Format::PONYBUNNY);
    assert_eq!(line(&transcript), ["user: a", "*assistant: b"]);
    assert_eq!(transcript.problems.len(), 1);
}
