//! Detecting the format of a transcript from its content.

use ctx_core::{Error, ErrorKind, Result};
use ctx_dialect::json::Object;

use crate::formats::Format;
use crate::read::Document;
use crate::source::Source;

/// The bytes to read from the beginning: at first, and if these do not show the format (a damaged
/// beginning, or one very long line).
const LOOKS: [usize; 2] = [64 * 1024, 4 * 1024 * 1024];

/// How clearly a part of a transcript shows its format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Evidence {
    /// Decides only without evidence for another format.
    Weak,
    Likely,
    Certain,
}

/// The format of messages that no format claims.
const PLAIN: Format = Format::OPENAI_CHAT;

/// Detects the format of a source; `None` if it is a document, for [`document_format`].
pub(crate) fn detect(source: &Source) -> Result<Option<Format>> {
    let size = source.len()?;
    let mut beginning = Vec::new();
    for look in LOOKS {
        beginning = source.beginning(look)?;
        if let Some(format) = lines(&beginning) {
            return Ok(Some(format));
        }
        if size <= look as u64 {
            break;
        }
    }
    check_document(&beginning, &source.name())?;
    Ok(None)
}

/// Checks that a stream with this beginning can be a transcript.
pub(crate) fn check_beginning(beginning: &[u8], name: &str) -> Result<()> {
    if lines(beginning).is_some() {
        return Ok(());
    }
    if beginning.contains(&0) && !is_text(beginning) {
        return Err(unknown(BINARY, name));
    }
    check_document(beginning, name)
}

const BINARY: &str = "not a transcript: binary file";

fn unknown(what: &'static str, name: &str) -> Error {
    Error::new(ErrorKind::UnknownFormat, what)
        .with("path", name)
        .hint(format!("known formats: {}", Format::known()))
}

fn is_text(bytes: &[u8]) -> bool {
    // A character cut off at the end is not damage.
    std::str::from_utf8(bytes).map_or_else(|e| e.error_len().is_none(), |_| true)
}

/// Checks that a file that is not line-based can be a document.
fn check_document(beginning: &[u8], name: &str) -> Result<()> {
    if is_utf16(beginning) {
        return Err(Error::new(ErrorKind::UnknownFormat, "the file is in UTF-16, not UTF-8")
            .with("path", name)
            .hint("convert it: iconv -f UTF-16 -t UTF-8 FILE > COPY"));
    }
    let blank = |b: &u8| b.is_ascii_whitespace() || *b == 0;
    let text = beginning.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(beginning);
    Err(match text.iter().find(|b| !blank(b)) {
        Some(b'{' | b'[' | b'/') => return Ok(()),
        None if beginning.is_empty() => unknown("not a transcript: the file is empty", name),
        None if text.contains(&0) => {
            unknown("not a transcript: the file contains only NUL bytes", name)
        }
        None => unknown("not a transcript: the file contains only whitespace", name),
        // If the first bytes are damaged, messages may still follow.
        Some(_) if !text.contains(&0) && ["role", "content"].iter().all(|k| contains(text, k)) => {
            return Ok(());
        }
        Some(_) if text.contains(&0) || !is_text(text) => unknown(BINARY, name),
        Some(_) => unknown("unknown transcript format", name),
    })
}

fn contains(text: &[u8], word: &str) -> bool {
    memchr::memmem::find(text, word.as_bytes()).is_some()
}

/// Whether a text has a UTF-16 byte order mark, or every other byte is NUL.
fn is_utf16(text: &[u8]) -> bool {
    const SEEN: usize = 64;
    if text.starts_with(b"\xFF\xFE") || text.starts_with(b"\xFE\xFF") {
        return true;
    }
    let pairs: Vec<_> = text.chunks_exact(2).take(SEEN).collect();
    let narrow = |nul: usize, byte: usize| {
        pairs.len() > 3 && pairs.iter().all(|pair| pair[nul] == 0 && pair[byte] != 0)
    };
    narrow(0, 1) || narrow(1, 0)
}

/// Returns the format for which the evidence is strongest.
fn strongest(judge: impl Fn(Format) -> Option<Evidence>) -> Option<(Evidence, Format)> {
    let judged = Format::ALL.iter().rev().filter_map(|&format| Some((judge(format)?, format)));
    judged.max_by_key(|(evidence, _)| *evidence)
}

/// Returns the format of the first line that identifies one. A bare message is the weakest
/// evidence: it may be a fragment of a broken line of another format.
pub(crate) fn lines(beginning: &[u8]) -> Option<Format> {
    let mut bare = None;
    let first = beginning.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    let first = Object::parse_prefix(first.trim_start_matches('\u{FEFF}').trim_start()).0;
    if let Some(format) = Format::ALL.iter().find(|format| (format.0.begins)(&first)) {
        return Some(*format);
    }
    for line in beginning.split(|&b| b == b'\n') {
        let text = String::from_utf8_lossy(line);
        let text = text.trim_start_matches(|c: char| {
            c == '\u{FEFF}' || c == '\0' || c == '\u{FFFD}' || c.is_ascii_whitespace()
        });
        if !text.starts_with('{') {
            continue;
        }
        let (object, error) = Object::parse_prefix(text);
        let format = line_format(&object, error.is_none());
        if format.is_some() {
            return format;
        }
        if bare.is_none() && error.is_none() && object.has("role") {
            bare = Some(message_format(&object));
        }
    }
    bare
}

/// Returns the format that a line identifies. `whole`: the object was parsed to its end.
fn line_format(object: &Object<'_>, whole: bool) -> Option<Format> {
    let kind = object.text("type");
    let (evidence, format) =
        strongest(|format| (format.0.judge_line)(kind.as_deref(), object, whole))?;
    let is_body = kind.is_none() && (object.has("messages") || object.has("compactedHistory"));
    (!is_body || evidence == Evidence::Certain).then_some(format)
}

fn message_format(message: &Object<'_>) -> Format {
    strongest(|format| (format.0.judge_message)(message)).map_or(PLAIN, |(_, format)| format)
}

/// Returns the format of a document. Its fields outweigh its messages only if they are certain
/// evidence.
pub(crate) fn document_format(document: &Document<'_>) -> Format {
    let by_fields = strongest(|format| (format.0.judge_document)(document));
    if let Some((Evidence::Certain, format)) = by_fields {
        return format;
    }
    let mut by_message = document.objects.iter().map(message_format);
    let other = by_message.find(|format| *format != PLAIN);
    other.or(by_fields.map(|(_, format)| format)).unwrap_or(PLAIN)
}
