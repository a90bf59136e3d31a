//! Readers of the formats. Each turns a source into entries through a [`Builder`].

mod around;
mod claude;
mod codex;
mod document;
mod gemini;
mod jsonl;
mod pi;

use std::sync::Arc;

use ctx_core::{Result, Timestamp};
use ctx_dialect::json::{Object, integer, string};

use crate::builder::Builder;
use crate::format::Format;
use crate::source::Source;

pub(crate) use codex::{token_usage as codex_usage, window as codex_window};
pub(crate) use document::{Document, into_json};
pub(crate) use gemini::{gemini_project, gemini_to_pi, gemini_usage};

/// The model name of assistant messages that the client itself wrote.
pub(crate) const SYNTHETIC: &str = "<synthetic>";

/// The custom entries of a pi session that hold what other formats have outside of the messages.
pub(crate) const SYSTEM_PROMPT: &str = "ctx.system_prompt";
pub(crate) const TOOLS: &str = "ctx.tools";

/// Reads a transcript of lines.
pub(crate) fn lines(format: Format, source: &Arc<Source>) -> Result<Builder> {
    match format {
        Format::ClaudeCode => jsonl::read(source, claude::Claude::default()),
        Format::Codex => jsonl::read(source, codex::Codex::default()),
        Format::OpenAiChat | Format::Anthropic | Format::PonyBunny => {
            jsonl::read(source, document::MessageLines(format))
        }
        Format::Ctx | Format::Pi | Format::GeminiCli => jsonl::read(source, pi::Pi::default()),
    }
}

/// A transcript of a format that is read as a session of pi.
pub(crate) fn translated(source: Source) -> Result<Source> {
    let text = source.beginning(usize::MAX)?;
    let lines = gemini_to_pi(&String::from_utf8_lossy(&text), source.path());
    Ok(source.with_bytes(lines))
}

/// An entry's time: ISO text, or milliseconds since the epoch.
pub(crate) fn timestamp(object: &Object<'_>) -> Option<Timestamp> {
    let raw = object.get("timestamp")?;
    match string(raw) {
        Some(text) => text.parse::<jiff::Timestamp>().ok().map(|t| Timestamp(t.as_millisecond())),
        None => integer(raw).map(Timestamp),
    }
}
