//! A folder with a home and a transcript, and sample transcripts.

use std::io::Write;
use std::path::PathBuf;

use ctx_core::{Compacted, EntryId, RawJson, Timestamp, Tokens};
use ctx_session::key::FileId;
use ctx_session::{
    Home, LogOptions, NewEntry, NewSession, Overlay, SessionLog, Transcript, open,
    store_compaction, undo_compaction,
};

pub(crate) const NOW: Timestamp = Timestamp(1_765_233_665_306);

/// A folder with a home and a transcript.
pub(crate) struct House {
    _dir: tempfile::TempDir,
    pub(crate) home: Home,
    pub(crate) path: PathBuf,
}

impl House {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("session.jsonl");
        std::fs::write(&path, bytes).unwrap();
        Self { home: Home::at(dir.path().join("home")), path, _dir: dir }
    }

    /// A ctx session with messages `m1` to `m<count>`, alternating between user and assistant.
    pub(crate) fn ours(count: usize) -> Self {
        let house = Self::new(b"");
        std::fs::remove_file(&house.path).unwrap();
        let session = NewSession {
            id: FileId::new("s").unwrap(),
            timestamp: NOW,
            cwd: "/".into(),
            parent_session: None,
        };
        let mut log = SessionLog::create(&house.path, &session, LogOptions::default()).unwrap();
        for n in 1..=count {
            log.append(&said(n), NOW).unwrap();
        }
        log.close().unwrap();
        house
    }

    pub(crate) fn open(&self) -> Transcript {
        open(&self.home, &self.path).unwrap()
    }

    pub(crate) fn store(
        &self,
        at: Option<&EntryId>,
        compacted: &Compacted,
    ) -> ctx_core::Result<EntryId> {
        store_compaction(&self.home, &self.path, at, compacted, NOW)
    }

    pub(crate) fn undo(&self, which: Option<&EntryId>) -> Option<EntryId> {
        let undone = undo_compaction(&self.home, &self.path, which, NOW).unwrap();
        undone.map(|undone| undone.id)
    }

    pub(crate) fn overlay(&self) -> PathBuf {
        Overlay::of(&self.home, &self.path).unwrap().path
    }

    pub(crate) fn grow(&self, text: &str) {
        let mut file = std::fs::File::options().append(true).open(&self.path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }
}

pub(crate) fn said(n: usize) -> NewEntry {
    let role = if n % 2 == 1 { "user" } else { "assistant" };
    NewEntry::message(RawJson::from_text(format!(r#"{{"role":"{role}","content":"m{n}"}}"#)))
}

pub(crate) fn compacted(summary: &str, first_kept: &EntryId) -> Compacted {
    Compacted {
        summary: summary.into(),
        first_kept_entry_id: first_kept.clone(),
        tokens_before: Tokens(1_000),
        tokens_after: Some(Tokens(100)),
        details: Some(serde_json::json!({"rung": "extractive"})),
        staying: Vec::new(),
        projections: Vec::new(),
    }
}

/// The complete content of a context, for byte-for-byte comparison.
pub(crate) fn snapshot(transcript: &Transcript, leaf: Option<&EntryId>) -> Vec<String> {
    let context = transcript.context(leaf).unwrap();
    let around = format!("{} {:?} {:?}", context.thinking_level, context.model, context.compaction);
    let messages = context.entries.iter().map(|entry| {
        let message = entry.message().unwrap();
        format!("{} {}", entry.id(), serde_json::to_string(&*message).unwrap())
    });
    std::iter::once(around).chain(messages).collect()
}

pub(crate) fn texts(transcript: &Transcript, leaf: Option<&EntryId>) -> Vec<String> {
    let entries = transcript.context(leaf).unwrap().entries;
    entries.iter().map(|entry| entry.message().unwrap().plain_text()).collect()
}

/// The message `back` positions from the end of the context.
pub(crate) fn kept(transcript: &Transcript, back: usize) -> EntryId {
    let entries = transcript.context(None).unwrap().entries;
    entries[entries.len() - back].id().clone()
}

/// A line of Claude Code.
pub(crate) fn claude(uuid: &str, kind: &str, message: &str) -> String {
    format!(
        r#"{{"type":"{kind}","uuid":"{uuid}","parentUuid":null,"sessionId":"s","message":{message}}}"#
    ) + "\n"
}

/// One answer that spans several lines, with its results in between.
pub(crate) fn claude_lines() -> Vec<String> {
    let answer = |uuid: &str, id: &str, block: &str| {
        let message =
            format!(r#"{{"id":"{id}","model":"o","role":"assistant","content":[{block}]}}"#);
        claude(uuid, "assistant", &message)
    };
    let call = |id: &str| format!(r#"{{"type":"tool_use","id":"{id}","name":"ls","input":{{}}}}"#);
    let result = |uuid: &str, id: &str| {
        let block =
            format!(r#"{{"type":"tool_result","tool_use_id":"{id}","content":"{id} done"}}"#);
        claude(uuid, "user", &format!(r#"{{"role":"user","content":[{block}]}}"#))
    };
    vec![
        claude("u1", "user", r#"{"role":"user","content":"go"}"#),
        answer("a1", "m1", r#"{"type":"text","text":"first"}"#),
        claude("u2", "user", r#"{"role":"user","content":"more"}"#),
        answer("a2", "m2", r#"{"type":"text","text":"let me see"}"#),
        answer("a3", "m2", &call("t1")),
        answer("a4", "m2", &call("t2")),
        result("r1", "t1"),
        result("r2", "t2"),
    ]
}

pub(crate) fn pi_line(id: &str, parent: &str, text: &str) -> String {
    format!(
        r#"{{"type":"message","id":"{id}","parentId":{parent},"timestamp":"2026-01-01T00:00:01.000Z","message":{{"role":"user","content":"{text}"}}}}"#
    ) + "\n"
}

pub(crate) const PI_HEADER: &str = "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"cwd\":\"/\"}\n";

/// One, two and three; then two branches.
pub(crate) fn pi_tree() -> String {
    let lines = [
        ("a", "null", "one"),
        ("b", "\"a\"", "two"),
        ("c", "\"b\"", "three"),
        ("l", "\"c\"", "left"),
        ("r", "\"c\"", "right"),
        ("o", "\"a\"", "other"),
        ("r2", "\"r\"", "right again"),
    ];
    let lines = lines.map(|(id, parent, text)| pi_line(id, parent, text));
    format!("{PI_HEADER}{}", lines.concat())
}

pub(crate) const CODEX: &str = r#"{"timestamp":"2026-01-01T00:00:00Z","type":"session_meta","payload":{"id":"s"}}
{"timestamp":"2026-01-01T00:00:00Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"old"}]}}
{"timestamp":"2026-01-01T00:00:00Z","type":"compacted","payload":{"message":"s","replacement_history":[{"type":"message","role":"user","content":[{"type":"input_text","text":"r0"}]},{"type":"message","role":"user","content":[{"type":"input_text","text":"r1"}]},{"type":"message","role":"user","content":[{"type":"input_text","text":"r2"}]}]}}
{"timestamp":"2026-01-01T00:00:00Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"new"}]}}
"#;
