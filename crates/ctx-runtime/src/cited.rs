//! From a citation to the messages behind it.

use std::sync::Arc;

use ctx_core::{Block, Entry, EntryId, Error, ErrorKind, Message, Result};
use ctx_session::Transcript;

use crate::words::shortened;

/// Room for an id: a UUID and a little more.
pub const ID_CHARS: usize = 40;

/// How many ids are named that begin alike.
const ALIKE: usize = 4;

/// The entry of that id, or the one whose id begins so, if no other does.
///
/// # Errors
///
/// [`ErrorKind::NotFound`], without a hint; [`ErrorKind::InvalidInput`] where several begin so.
pub fn find_entry(transcript: &Transcript, id: &str) -> Result<EntryId> {
    if let Some(found) = transcript.find(id) {
        return Ok(found);
    }
    let named = shortened(id, ID_CHARS);
    let ids = transcript.entries().iter().map(|entry| entry.id());
    let alike = ids.filter(|known| !id.is_empty() && known.starts_with(id));
    let alike: Vec<String> = alike.take(ALIKE).map(|known| shortened(known, ID_CHARS)).collect();
    Err(match alike.as_slice() {
        [] => Error::new(ErrorKind::NotFound, format!("no entry '{named}'")),
        some => Error::new(ErrorKind::InvalidInput, format!("several ids begin with '{named}'"))
            .hint(format!("give more of it; among them are {}", some.join(", "))),
    })
}

/// The messages behind citations, in their order. A citation is what stands in a summary (`[e:a]`,
/// `e:a`, `[e:a, e:b]`, `[e:a] [e:b]`), an id or the beginning of one that no other has; the id of a
/// compaction is for all that it stands for.
///
/// # Errors
///
/// Those of [`find_entry`], and [`ErrorKind::NotFound`] for an entry that holds no message.
pub fn expand(transcript: &Transcript, cited: &[impl AsRef<str>]) -> Result<Vec<Arc<Entry>>> {
    let all = transcript.all_messages();
    let mut found = Vec::new();
    for wanted in cited.iter().flat_map(|cited| citations(transcript, cited.as_ref())) {
        let id = find_entry(transcript, wanted)?;
        found.extend(originals(transcript, &all, &id)?);
    }
    Ok(found)
}

/// The ids in what somebody copies from a summary.
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
fn originals(transcript: &Transcript, all: &[Arc<Entry>], id: &EntryId) -> Result<Vec<Arc<Entry>>> {
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
            .hint("cite an entry of the conversation, such as a summary does")),
    }
}

/// A part of a message as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// What it is, where it is not simply said: `calls`, `gave:`, `failed:`, `ran`, `image`.
    pub label: Option<&'static str>,
    /// What it says, of one line or of many.
    pub text: String,
    /// Whether the model thought it and nobody heard it.
    pub is_thought: bool,
}

impl Piece {
    /// Whether what it says stands on lines of its own below the label.
    #[must_use]
    pub fn is_below(&self) -> bool {
        self.label.is_some_and(|label| label.ends_with(':'))
    }
}

/// A message as text, part by part.
#[must_use]
pub fn pieces(message: &Message) -> Vec<Piece> {
    let said = |text: &str| Piece { label: None, text: text.to_owned(), is_thought: false };
    let labelled =
        |label: &'static str, text: String| Piece { label: Some(label), text, is_thought: false };
    let mut pieces = Vec::with_capacity(message.blocks.len());
    for block in &message.blocks {
        match block {
            Block::Text { text } => pieces.push(said(text)),
            Block::Thinking { thinking, .. } => {
                pieces.push(Piece { is_thought: true, ..said(thinking) });
            }
            Block::ToolCall(call) => {
                let text = format!("{} {}", call.name, call.arguments.as_str());
                pieces.push(labelled("calls", text));
            }
            Block::ToolResult(result) => {
                let label = if result.is_error { "failed:" } else { "gave:" };
                pieces.push(labelled(label, result.plain_text().into()));
            }
            Block::Image(image) => pieces.push(labelled("image", image.mime_type.to_string())),
            Block::Bash(run) => {
                pieces.push(labelled("ran", run.command.to_string()));
                pieces.push(said(&run.output));
            }
            Block::Opaque { json } => pieces.push(said(json.as_str())),
        }
    }
    pieces
}

/// A message as text: who speaks, the entry, the time, and what is said.
#[must_use]
pub fn told(entry: &Entry, message: &Message) -> String {
    let time = entry.timestamp().and_then(|at| jiff::Timestamp::from_millisecond(at.0).ok());
    let time = time.map(|time| format!(" {time:.0}")).unwrap_or_default();
    let mut out = format!("{} [e:{}]{time}\n", message.role.name(), entry.id());
    for piece in pieces(message) {
        match piece.label {
            Some(label) if piece.is_below() => out.push_str(&format!("{label}\n{}\n", piece.text)),
            Some(label) => out.push_str(&format!("{label} {}\n", piece.text)),
            None if piece.is_thought => out.push_str(&format!("(thinks) {}\n", piece.text)),
            None => out.push_str(&format!("{}\n", piece.text)),
        }
    }
    out
}
