//! Compactions are stored and undone in sessions of every format.

use ctx_core::Tokens;
use ctx_session::{CompactionAuthor, Format};

use super::house::*;

/// Stores, lists, undoes and redoes a compaction; everything else must stay unchanged.
pub(crate) fn there_and_back(house: &House, name: &str) {
    let bytes = std::fs::read(&house.path).unwrap();
    let plain = house.open();
    let before = snapshot(&plain, None);
    let (line, tips) = (plain.main_line().unwrap().len(), plain.tips().len());
    let stats = plain.stats().unwrap();
    let (listed, counted) = (plain.compaction_list(None).unwrap(), plain.compactions().unwrap());
    let leaf = plain.leaf().cloned();
    let first_kept = kept(&plain, 2);
    let id = house.store(leaf.as_ref(), &compacted("what was", &first_kept)).unwrap();

    let transcript = house.open();
    assert_eq!(transcript.problems, plain.problems, "{name}");
    let after = snapshot(&transcript, None);
    assert_eq!(after.len(), 4, "{name}: a summary and what is kept");
    assert_eq!(after[2..], before[before.len() - 2..], "{name}");
    assert_eq!(snapshot(&transcript, leaf.as_ref()), before, "{name}: before it, as it was");
    assert_eq!(transcript.context(None).unwrap().compaction.as_ref(), Some(&id));
    assert_eq!(transcript.compactions().unwrap(), counted + 1, "{name}");
    assert_eq!(transcript.main_line().unwrap().len(), line, "{name}");
    assert_eq!(transcript.tips().len(), tips, "{name}");
    assert_eq!(transcript.leaf(), Some(&id));
    for (index, entry) in transcript.entries.iter().enumerate() {
        assert!(entry.parent().is_none_or(|parent| parent < index), "{name}");
        transcript.raw_line(index).unwrap();
    }

    let list = transcript.compaction_list(None).unwrap();
    assert_eq!(list[..list.len() - 1], listed[..], "{name}");
    let newest = list.last().unwrap();
    assert_eq!((&newest.id, newest.by, newest.undone), (&id, CompactionAuthor::Ctx, false));
    assert_eq!((newest.summary.as_str(), newest.tokens_before), ("what was", Some(Tokens(1_000))));
    assert_eq!(newest.first_kept_entry_id.as_ref(), Some(&first_kept));
    assert!(newest.details.as_ref().unwrap().as_str().contains("extractive"));
    let covered = transcript.covered_by(&id, None).unwrap();
    assert_eq!(covered.len(), newest.covered.messages, "{name}");
    assert_eq!(covered.first().map(|e| e.id()), newest.covered.first.as_ref(), "{name}");

    let replay = transcript.messages_with_compactions(None).unwrap();
    assert_eq!(replay.items.len(), line, "{name}");
    assert_eq!(replay.trailing.len(), 1, "{name}");
    assert_eq!(replay.trailing[0], (id.clone(), compacted("what was", &first_kept)), "{name}");

    let undo = house.undo(None).unwrap();
    let undone = house.open();
    assert_eq!(snapshot(&undone, None), before, "{name}");
    let newest = undone.compaction_list(None).unwrap().pop().unwrap();
    assert_eq!((newest.undone, newest.undone_by.as_ref()), (true, Some(&undo)), "{name}");
    assert_eq!(undone.messages_with_compactions(None).unwrap().trailing.len(), 0);
    assert_eq!(house.undo(Some(&id)), None, "{name}: once is enough");

    house.undo(Some(&undo)).unwrap();
    assert_eq!(snapshot(&house.open(), None), after, "{name}: an undo can be undone");
    house.undo(None).unwrap();
    assert_eq!(snapshot(&house.open(), None), before, "{name}");
    assert_eq!(house.undo(None), None, "{name}");

    let after = house.open();
    if !after.is_ctx_session() {
        assert_eq!(std::fs::read(&house.path).unwrap(), bytes, "{name}: the file is untouched");
        assert_eq!(after.stats().unwrap(), stats, "{name}");
        let mut copies = [Vec::new(), Vec::new()];
        plain.repaired_copy(&mut copies[0]).unwrap();
        after.repaired_copy(&mut copies[1]).unwrap();
        assert!(copies[0] == copies[1], "{name}");
        assert_eq!(after.inspect().unwrap(), plain.inspect().unwrap(), "{name}");
    }
}

/// Small transcripts, at least one of each format.
pub(crate) fn every_format() -> Vec<(Format, String)> {
    let chat = r#"[{"role":"user","content":"one"},{"role":"assistant","content":"two"},{"role":"user","content":"three"}]"#;
    let pony = "{messages: [{role: 'user', content: 'a'}, {role: 'assistant', content: 'b'}, {role: 'user', content: 'c'}], compactedHistory: [{role: 'system', content: 's'}]}";
    let v1 = "{\"type\":\"session\",\"id\":\"s\"}\n".to_owned()
        + r#"{"type":"message","message":{"role":"user","content":"x"}}"#
        + "\n{\"type\":\"message\",\"message\":{\"role\":\"user\",\"content\":\"y\"}}\n"
        + "{\"type\":\"message\",\"message\":{\"role\":\"user\",\"content\":\"z\"}}\n";
    let claude_code =
        claude_lines().concat() + &claude("u9", "user", r#"{"role":"user","content":"end"}"#);
    let messages = ANTHROPIC.split_once("\"messages\":").map_or("", |(_, rest)| rest);
    let messages = messages.strip_suffix('}').unwrap_or_default().to_owned();
    vec![
        (Format::OPENAI_CHAT, chat.to_owned()),
        (Format::OPENAI_CHAT, chat.trim_matches(['[', ']']).replace("},", "}\n")),
        (Format::PONYBUNNY, pony.to_owned()),
        (Format::PI, pi_tree()),
        (Format::PI, v1),
        (Format::CLAUDE_CODE, claude_code),
        (Format::CODEX, CODEX_SAID.to_owned()),
        (Format::ANTHROPIC, ANTHROPIC.to_owned()),
        (Format::ANTHROPIC, messages),
    ]
}

/// A request with a system prompt, tools, a call and its result.
const ANTHROPIC: &str = r#"{"model":"opus","system":[{"type":"text","text":"be kind"}],"tools":[{"name":"now","input_schema":{}}],"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"text","text":"let me see"},{"type":"tool_use","id":"t","name":"now","input":{"z":1.50}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"noon"}]}]},{"role":"assistant","content":[{"type":"text","text":"noon it is"}]},{"role":"user","content":"thanks"}]}"#;

/// A rollout with Codex's own compaction.
const CODEX_SAID: &str = r#"{"timestamp":"2026-01-01T00:00:00Z","type":"session_meta","payload":{"id":"s","instructions":"be codex"}}
{"timestamp":"2026-01-01T00:00:00Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"go"}]}}
{"timestamp":"2026-01-01T00:00:00Z","type":"response_item","payload":{"type":"function_call","name":"sh","arguments":"{}","call_id":"f1"}}
{"timestamp":"2026-01-01T00:00:00Z","type":"response_item","payload":{"type":"function_call_output","call_id":"f1","output":"one"}}
{"timestamp":"2026-01-01T00:00:00Z","type":"compacted","payload":{"message":"s"}}
{"timestamp":"2026-01-01T00:00:00Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"more"}]}}
{"timestamp":"2026-01-01T00:00:00Z","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"done"}]}}
{"timestamp":"2026-01-01T00:00:00Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"end"}]}}
"#;
