//! Readers of the formats. Each turns a source into entries through a [`Builder`].

mod around;
mod claude;
mod codex;
mod document;
mod gemini;
mod jsonl;
mod opencode;
mod pi;

use std::sync::Arc;

use ctx_core::{Result, Timestamp};
use ctx_dialect::json::{Fresh, Object, integer, quote, string};

use crate::builder::Builder;
use crate::format::Format;
use crate::log::PI_VERSION;
use crate::source::Source;

pub(crate) use codex::{token_usage as codex_usage, window as codex_window};
pub(crate) use document::{Document, into_json};
pub(crate) use gemini::{gemini_project, gemini_usage};
pub(crate) use opencode::{opencode_usage, opencode_usage_in};

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
        Format::Ctx | Format::Pi | Format::GeminiCli | Format::Opencode => {
            jsonl::read(source, pi::Pi::default())
        }
    }
}

/// A transcript of a format that is read as a session of pi.
pub(crate) fn translated(source: Source, format: Format) -> Result<Source> {
    let text = source.beginning(usize::MAX)?;
    let text = String::from_utf8_lossy(&text);
    let document = Object::parse_prefix(text.trim_start()).0;
    let lines = match format {
        Format::Opencode if document.has("messages") => opencode::to_pi(&document),
        Format::Opencode => {
            let collected = source.path().and_then(|path| opencode::collected(&text, path));
            opencode::to_pi(&Object::parse(&collected.unwrap_or_default())?)
        }
        _ => gemini::to_pi(&text, source.path()),
    };
    Ok(source.with_bytes(lines))
}

/// A session of pi that is written of another agent's.
struct PiLines {
    lines: Vec<String>,
    parent: String,
}

impl PiLines {
    fn new(id: &str, time: Option<&str>, cwd: Option<&str>) -> Self {
        let header = Fresh::new().text("type", "session").plain("version", PI_VERSION);
        let header = header.text("id", id).text_if("timestamp", time).text_if("cwd", cwd);
        Self { lines: vec![header.end()], parent: "null".to_owned() }
    }

    /// Adds an entry. The time is JSON.
    fn entry(&mut self, kind: &str, id: &str, time: &str, fields: &Fresh) {
        let id = quote(id);
        let entry = Fresh::new().text("type", kind).raw("id", &id).raw("parentId", &self.parent);
        self.lines.push(entry.raw("timestamp", time).with(fields).end());
        self.parent = id;
    }

    /// Adds messages that were one.
    fn messages(&mut self, id: &str, time: &str, parts: impl IntoIterator<Item = String>) {
        for (n, part) in parts.into_iter().enumerate() {
            let id = if n == 0 { id.to_owned() } else { format!("{id}.{n}") };
            self.entry("message", &id, time, &Fresh::new().raw("message", part));
        }
    }

    fn end(self) -> Vec<u8> {
        (self.lines.join("\n") + "\n").into_bytes()
    }
}

/// An entry's time: ISO text, or milliseconds since the epoch.
pub(crate) fn timestamp(object: &Object<'_>) -> Option<Timestamp> {
    let raw = object.get("timestamp")?;
    match string(raw) {
        Some(text) => text.parse::<jiff::Timestamp>().ok().map(|t| Timestamp(t.as_millisecond())),
        None => integer(raw).map(Timestamp),
    }
}
