//! Reading each format, on small samples.

#![allow(clippy::unwrap_used)] // Test helpers are test code.

mod conversions;
mod others;
mod pi_sessions;

use ctx_core::Block;
use ctx_session::{SessionContext, Transcript};

fn read(text: &str) -> Transcript {
    Transcript::from_bytes(text.as_bytes().to_vec()).unwrap()
}

/// Returns the messages of the main line: role, text, and `*` if it answers a request.
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

/// Builds a pi v3 session of these entries. Each is a child of the previous one unless it names its
/// parent.
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
