//! Resolves citations to the cited messages.

use std::sync::Arc;

use ctx_core::printable::shortened;
use ctx_core::{Block, Entry, EntryId, Error, ErrorKind, Message, Result};
use ctx_session::Transcript;

/// Maximum length of an id: a UUID and a little more.
pub const ID_CHARS: usize = 40;

/// Maximum number of ids listed when a prefix is ambiguous.
const ALIKE: usize = 4;

/// Finds an entry by its id or by an unambiguous prefix of its id.
///
/// # Errors
///
/// [`ErrorKind::NotFound`], without a hint; [`ErrorKind::InvalidInput`] for an ambiguous prefix.
pub fn find_entry(transcript: &Transcript, id: &str) -> Result<EntryId> {
    if let Some(found) = transcript.find(id) {
        return Ok(found);
    }
    let ids = transcript.entries.iter().map(|entry| &*entry.id);
    find_id(ids, id, "entry").map(EntryId::from)
}

/// Returns the only id that begins with `id`. `what` says of what they are the ids.
///
/// # Errors
///
/// Those of [`find_entry`].
pub fn find_id<'a>(
    ids: impl Iterator<Item = &'a str>,
    id: &str,
    what: &'static str,
) -> Result<&'a str> {
    let named = shortened(id, ID_CHARS);
    let alike = ids.filter(|known| !id.is_empty() && known.starts_with(id));
    let alike: Vec<&str> = alike.take(ALIKE).collect();
    Err(match alike.as_slice() {
        [] => Error::new(ErrorKind::NotFound, format!("{what} '{named}' not found")),
        [only] => return Ok(only),
        some => {
            let some: Vec<_> = some.iter().map(|known| shortened(known, ID_CHARS)).collect();
            Error::new(ErrorKind::InvalidInput, format!("several ids begin with '{named}'"))
                .hint(format!("give a longer prefix, for example of {}", some.join(", ")))
        }
    })
}

/// Returns the cited messages, in the order of the citations. A citation has the form used in
/// summaries (`[e:a]`, `e:a`, `[e:a, e:b]`, `[e:a] [e:b]`), or is an id or an unambiguous prefix of
/// an id. The id of a compaction refers to all messages that it replaced.
///
/// # Errors
///
/// The errors of [`find_entry`], and [`ErrorKind::NotFound`] for an entry without a message.
pub fn expand(transcript: &Transcript, cited: &[impl AsRef<str>]) -> Result<Vec<Arc<Entry>>> {
    let all = transcript.all_messages();
    let mut found = Vec::new();
    for id in cited.iter().flat_map(|cited| citations(transcript, cited.as_ref())) {
        let id = find_entry(transcript, id)?;
        found.extend(originals(transcript, &all, &id)?);
    }
    Ok(found)
}

/// Returns the ids in a text copied from a summary.
fn citations<'a>(transcript: &Transcript, text: &'a str) -> Vec<&'a str> {
    // Ids in a transcript may have any format.
    if transcript.find(text).is_some() {
        return vec![text];
    }
    let parts = text.split(|c: char| c.is_whitespace() || matches!(c, '[' | ']' | ','));
    let ids = parts.map(|id| id.strip_prefix("e:").unwrap_or(id)).filter(|id| !id.is_empty());
    let ids: Vec<_> = ids.collect();
    if ids.is_empty() { vec![text] } else { ids }
}

/// Returns the message of an entry or, for a compaction, the messages it replaced.
fn originals(transcript: &Transcript, all: &[Arc<Entry>], id: &EntryId) -> Result<Vec<Arc<Entry>>> {
    if let Ok(covered) = transcript.covered_by(id, None) {
        return Ok(covered);
    }
    if let Some(entry) = all.iter().find(|entry| entry.id() == id) {
        return Ok(vec![entry.clone()]);
    }
    // A message written over several lines has the id of the first line.
    let line = transcript.messages_to(Some(id))?;
    match line.last() {
        Some(item) => Ok(vec![item.entry.clone()]),
        None => Err(Error::new(ErrorKind::NotFound, "the entry contains no message")
            .with("entry", id)
            .hint("cite a message entry, as summaries do")),
    }
}

/// Returns a message as text, each part that is not plain text after a label.
pub fn message_text(message: &Message) -> String {
    let parts = message.blocks.iter().map(|block| match block {
        Block::Text { text } => format!("{text}\n"),
        Block::Thinking { thinking, .. } => format!("(thinks) {thinking}\n"),
        Block::ToolCall(call) => format!("calls {} {}\n", call.name, call.arguments.as_str()),
        Block::ToolResult(result) => {
            let label = if result.is_error { "failed:" } else { "gave:" };
            format!("{label}\n{}\n", result.plain_text())
        }
        Block::Image(image) => format!("image {}\n", image.mime_type),
        Block::Bash(run) => format!("ran {}\n{}\n", run.command, run.output),
        Block::Opaque { json } => format!("{}\n", json.as_str()),
    });
    parts.collect()
}

/// Formats a message: role, entry, time and text.
pub fn format_message(entry: &Entry, message: &Message) -> String {
    let time = entry.timestamp().and_then(|at| jiff::Timestamp::from_millisecond(at.0).ok());
    let time = time.map(|time| format!(" {time:.0}")).unwrap_or_default();
    format!("{} [e:{}]{time}\n{}", message.role.name(), entry.id(), message_text(message))
}
