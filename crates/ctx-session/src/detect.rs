//! Which format a transcript is in, from its beginning.

use ctx_core::{Error, ErrorKind, Result};
use ctx_dialect::json::Object;

use crate::format::Format;
use crate::source::Source;

/// How much of the beginning is looked at; the second size if the first does not settle it (a
/// damaged beginning, or one very long line).
const LOOKS: [usize; 2] = [64 * 1024, 4 * 1024 * 1024];

/// How a source is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// One entry a line.
    Lines(Format),
    /// One JSON or JSON5 value.
    Document,
}

/// Settles the format of a source.
pub(crate) fn detect(source: &Source) -> Result<Shape> {
    let size = source.len()?;
    let mut beginning = Vec::new();
    for look in LOOKS {
        beginning = source.beginning(look)?;
        if let Some(format) = lines(&beginning) {
            return Ok(Shape::Lines(format));
        }
        if size <= look as u64 {
            break;
        }
    }
    document(&beginning, &source.name())?;
    Ok(Shape::Document)
}

/// Whether what a stream begins with can be a transcript.
pub(crate) fn first_look(beginning: &[u8], name: &str) -> Result<()> {
    if lines(beginning).is_some() {
        return Ok(());
    }
    if beginning.contains(&0) && !is_text(beginning) {
        return Err(unknown(BINARY, name));
    }
    document(beginning, name)
}

const BINARY: &str = "a binary file is no transcript";

fn unknown(what: &'static str, name: &str) -> Error {
    let known: Vec<_> = Format::ALL.iter().map(|f| f.name()).collect();
    Error::new(ErrorKind::UnknownFormat, what)
        .with("path", name)
        .hint(format!("known formats: {}", known.join(", ")))
}

fn is_text(bytes: &[u8]) -> bool {
    // A character that is cut off at the end is no damage.
    std::str::from_utf8(bytes).map_or_else(|e| e.error_len().is_none(), |_| true)
}

/// Whether a file that is not written line by line can be a document.
fn document(beginning: &[u8], name: &str) -> Result<()> {
    if is_utf16(beginning) {
        return Err(Error::new(ErrorKind::UnknownFormat, "the file is in UTF-16, not UTF-8")
            .with("path", name)
            .hint("convert it: iconv -f UTF-16 -t UTF-8 FILE > COPY"));
    }
    let blank = |b: &u8| b.is_ascii_whitespace() || *b == 0;
    let text = beginning.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(beginning);
    Err(match text.iter().find(|b| !blank(b)) {
        Some(b'{' | b'[' | b'/') => return Ok(()),
        None if beginning.is_empty() => unknown("the file is empty: it is no transcript", name),
        None if text.contains(&0) => {
            unknown("the file holds nothing but NUL bytes: it is no transcript", name)
        }
        None => unknown("the file holds only white space: it is no transcript", name),
        // Where the first bytes are damaged, messages may still follow.
        Some(_) if !text.contains(&0) && ["role", "content"].iter().all(|k| holds(text, k)) => {
            return Ok(());
        }
        Some(_) if text.contains(&0) || !is_text(text) => unknown(BINARY, name),
        Some(_) => unknown("the file is of no known transcript format", name),
    })
}

fn holds(text: &[u8], word: &str) -> bool {
    memchr::memmem::find(text, word.as_bytes()).is_some()
}

/// Whether a text has the mark of UTF-16, or its every other byte is NUL.
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

/// The format of the first line that gives one away. A bare message says least: it may be a piece
/// of a broken line of another format.
pub(crate) fn lines(beginning: &[u8]) -> Option<Format> {
    let mut bare = None;
    let first = beginning.utf8_chunks().next().map_or("", |chunk| chunk.valid()).trim_start();
    match Object::parse_prefix(first).0 {
        document if is_gemini(&document) => return Some(Format::GeminiCli),
        document if is_opencode(&document) => return Some(Format::Opencode),
        _ => {}
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

fn is_gemini(object: &Object<'_>) -> bool {
    object.has("sessionId") && object.has("projectHash")
}

/// `whole`: the object was read to its end.
fn line_format(object: &Object<'_>, whole: bool) -> Option<Format> {
    let has = |key: &str| object.has(key);
    let Some(kind) = object.text("type") else {
        let codex_header = has("record_type") || (has("instructions") && has("timestamp"));
        return match () {
            () if is_gemini(object) => Some(Format::GeminiCli),
            () if has("messages") || has("compactedHistory") => None,
            () if codex_header => Some(Format::Codex),
            () if has("id") && has("parentId") => Some(Format::Pi),
            () => None,
        };
    };
    match &*kind {
        "session" => Some(Format::Pi),
        "session_meta" | "response_item" | "event_msg" | "turn_context" | "compacted"
            if has("payload") || !whole =>
        {
            Some(Format::Codex)
        }
        "user" | "assistant" if has("message") || has("uuid") || has("parentUuid") => {
            Some(Format::ClaudeCode)
        }
        "summary" if has("leafUuid") => Some(Format::ClaudeCode),
        "file-history-snapshot" | "queue-operation" => Some(Format::ClaudeCode),
        _ if has("uuid") && (has("parentUuid") || has("sessionId")) => Some(Format::ClaudeCode),
        "message" if has("role") && has("content") && !has("message") => Some(Format::Codex),
        "message"
        | "thinking_level_change"
        | "model_change"
        | "compaction"
        | "branch_summary"
        | "custom"
        | "custom_message"
        | "label"
        | "session_info"
        | "context_edit"
            if !has("uuid") =>
        {
            Some(Format::Pi)
        }
        _ if has("parentId") && has("timestamp") => Some(Format::Pi),
        _ => None,
    }
}

/// Which provider's shape a message has. What both could have written counts as OpenAI's.
pub(crate) fn message_format(message: &Object<'_>) -> Format {
    const BUNNY: [&str; 3] = ["toolCalls", "toolCallId", "thinkingBlocks"];
    const OPENAI: [&str; 4] = ["tool_calls", "tool_call_id", "refusal", "reasoning_content"];
    const ANTHROPIC: [&str; 4] = ["tool_use", "tool_result", "thinking", "redacted_thinking"];
    if BUNNY.iter().any(|key| message.has(key)) {
        return Format::PonyBunny;
    }
    if OPENAI.iter().any(|key| message.has(key)) {
        return Format::OpenAiChat;
    }
    let blocks = message.array("content").unwrap_or_default();
    let anthropic = blocks.into_iter().filter_map(Object::of).any(|block| {
        let kind = block.text("type").unwrap_or_default();
        ANTHROPIC.contains(&&*kind) || (kind == "image" && block.has("source"))
    });
    if anthropic { Format::Anthropic } else { Format::OpenAiChat }
}

/// Whether a document is a session of opencode.
fn is_opencode(document: &Object<'_>) -> bool {
    let info = document.object("info");
    let info = info.as_ref().unwrap_or(document);
    info.has("directory") && info.text("id").is_some_and(|id| id.starts_with("ses_"))
}
