//! `ctx expand`.

use std::process::ExitCode;
use std::sync::Arc;

use ctx_core::{Block, Entry, EntryId, Error, ErrorKind, Message};
use ctx_session::Transcript;
use serde_json::value::RawValue;

use crate::args::Expand;
use crate::named::{ID_CHARS, find_entry};
use crate::out::{BOLD, DIM, Out};
use crate::setup;
use crate::words::{harmless, harmless_lines, shortened};

pub(crate) fn run(args: &Expand, out: &Out) -> anyhow::Result<ExitCode> {
    let transcript = setup::open(&args.session, out)?;
    let all = transcript.all_messages();
    let mut found: Vec<Arc<Entry>> = Vec::new();
    for wanted in args.entries.iter().flat_map(|cited| citations(&transcript, cited)) {
        let id = find_entry(&transcript, wanted)?;
        found.extend(originals(&transcript, &all, &id)?);
    }
    let mut json = Vec::new();
    for (at, entry) in found.iter().enumerate() {
        let message = entry.message()?;
        if args.json {
            json.extend(ctx_dialect::pi::write(&message));
        } else {
            if at > 0 {
                out.line("")?;
            }
            print(entry, &message, out)?;
        }
    }
    if args.json {
        out.json(&RawValue::from_string(format!("[{}]", json.join(",")))?)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The ids in what a person copies from a summary: `[e:a]`, `e:a`, `[e:a, e:b]`, `[e:a] [e:b]` or
/// `a`.
fn citations<'a>(transcript: &Transcript, text: &'a str) -> Vec<&'a str> {
    // A transcript may have ids of any shape.
    if transcript.find(text).is_some() {
        return vec![text];
    }
    let parts = text.split(|c: char| c.is_whitespace() || matches!(c, '[' | ']' | ','));
    let ids = parts.map(|id| id.strip_prefix("e:").unwrap_or(id)).filter(|id| !id.is_empty());
    let ids: Vec<_> = ids.collect();
    if ids.is_empty() { vec![text] } else { ids }
}

/// The message of an entry; or, for a compaction, the messages it stands for.
fn originals(
    transcript: &Transcript,
    all: &[Arc<Entry>],
    id: &EntryId,
) -> anyhow::Result<Vec<Arc<Entry>>> {
    if let Ok(covered) = transcript.covered_by(id, None) {
        return Ok(covered);
    }
    if let Some(entry) = all.iter().find(|entry| entry.id() == id) {
        return Ok(vec![entry.clone()]);
    }
    // A message that was written over several lines has the id of the first.
    let line = transcript.line_to(Some(id))?;
    match line.last() {
        Some(item) => Ok(vec![item.entry.clone()]),
        None => Err(Error::new(ErrorKind::NotFound, "the entry holds no message")
            .with("entry", id)
            .hint("cite an entry of the conversation, such as a summary does")
            .into()),
    }
}

fn print(entry: &Entry, message: &Message, out: &Out) -> anyhow::Result<()> {
    let time = entry.timestamp().and_then(|at| jiff::Timestamp::from_millisecond(at.0).ok());
    let time = time.map(|time| format!(" {DIM}{time:.0}{DIM:#}")).unwrap_or_default();
    let id = shortened(entry.id(), ID_CHARS);
    out.line(format!("{BOLD}{}{BOLD:#} {id}{time}", harmless(message.role.name())))?;
    for block in &message.blocks {
        match block {
            Block::Text { text } => out.line(harmless_lines(text))?,
            Block::Thinking { thinking, .. } => {
                out.line(format!("{DIM}{}{DIM:#}", harmless_lines(thinking)))?;
            }
            Block::ToolCall(call) => {
                let arguments = harmless_lines(call.arguments.as_str());
                out.line(format!("{DIM}calls{DIM:#} {} {arguments}", harmless(&call.name)))?;
            }
            Block::ToolResult(result) => {
                let verb = if result.is_error { "failed:" } else { "gave:" };
                out.line(format!("{DIM}{verb}{DIM:#}"))?;
                out.line(harmless_lines(&result.plain_text()))?;
            }
            Block::Image(image) => {
                out.line(format!("{DIM}image {}{DIM:#}", harmless(&image.mime_type)))?;
            }
            Block::Bash(run) => {
                out.line(format!("{DIM}ran{DIM:#} {}", harmless(&run.command)))?;
                out.line(harmless_lines(&run.output))?;
            }
            Block::Opaque { json } => out.line(harmless_lines(json.as_str()))?,
        }
    }
    Ok(())
}
