//! A transcript in another format.

use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;

use ctx_core::{Block, CallId, Entry, Error, ErrorKind, Message, Result, Role};
use ctx_dialect::json::{Fresh, array, quote};
use ctx_dialect::{anthropic, openai_chat, pi, tools};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::entry::{Audience, Detail, EntryKind, TreeEntry};
use crate::format::Format;
use crate::left_out::LeftOut;
use crate::load::Recipe;
use crate::read::{SYSTEM_PROMPT, TOOLS};
use crate::repair::{iso, line, write_error};
use crate::transcript::Transcript;

/// What a conversion did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Converted {
    /// How many messages were written.
    pub messages: usize,
    /// What the target has no place for, one sentence each.
    pub left_out: Vec<String>,
}

/// How a transcript is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConvertOptions {
    /// Without what compactions in force left out: PonyBunny's `compactedHistory` stands for it.
    pub compacted: bool,
}

impl Transcript {
    /// Writes the transcript's messages in another format, and says how many, and what was left
    /// out. Into its own format a transcript goes whole: a pi session with all branches and, in
    /// version 3, byte for byte; a request body with all its fields. Otherwise the main line is
    /// written, with everything that compactions left out, the system prompt and the tools;
    /// sidechains are not.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] for formats that are read only, [`ErrorKind::Io`] if writing
    /// fails, and what reading a message may give.
    pub fn convert<W: Write + ?Sized>(&self, to: Format, out: &mut W) -> Result<Converted> {
        self.convert_with(to, ConvertOptions::default(), out)
    }

    /// [`Transcript::convert`], with options.
    ///
    /// # Errors
    ///
    /// As [`Transcript::convert`]; and [`ErrorKind::InvalidInput`] for an option that the target
    /// does not have.
    pub fn convert_with<W: Write + ?Sized>(
        &self,
        to: Format,
        options: ConvertOptions,
        out: &mut W,
    ) -> Result<Converted> {
        let mut left_out = LeftOut::default();
        let messages = match to {
            Format::ClaudeCode | Format::Codex => {
                return Err(Error::new(
                    ErrorKind::InvalidInput,
                    format!("'{to}' can be read but not written"),
                )
                .hint("formats that can be written: pi, openai, anthropic, ponybunny"));
            }
            Format::PonyBunny if options.compacted => {
                left_out.around(self, to);
                self.to_compacted_history(out, &mut left_out)?
            }
            _ if options.compacted => {
                return Err(Error::new(
                    ErrorKind::InvalidInput,
                    format!("'{to}' has no place for history that was compacted"),
                )
                .hint("a summary and what it kept can be written as ponybunny"));
            }
            _ if to == self.format => {
                left_out.lost(self);
                match to {
                    Format::Pi => self.pi_copy(out)?,
                    _ => self.document_copy(out)?,
                }
                self.entries.iter().filter(|e| e.kind == EntryKind::Message).count()
            }
            _ => {
                left_out.around(self, to);
                match to {
                    Format::Pi => self.to_pi(out, &mut left_out)?,
                    Format::PonyBunny => self.to_ponybunny(out, &mut left_out)?,
                    _ => self.to_request(to, out, &mut left_out)?,
                }
            }
        };
        Ok(Converted { messages, left_out: left_out.end() })
    }

    /// Writes a request: the messages alone, or a body where there is more to say.
    fn to_request<W: Write + ?Sized>(
        &self,
        to: Format,
        out: &mut W,
        left_out: &mut LeftOut,
    ) -> Result<usize> {
        let messages = self.all_said()?;
        for message in messages.iter().filter(|message| message.role != Role::System) {
            left_out.of_message(message, to);
        }
        let mut body = Fresh::new();
        let (list, is_body) = match to {
            Format::Anthropic => {
                let written = anthropic::write(&messages);
                body = body.text_if("system", written.system.as_deref());
                (written.messages, true)
            }
            _ => (openai_chat::write(&messages), false),
        };
        let tools = self.written_tools(to, left_out);
        let list = array(list.iter().map(|m| m.as_str()));
        match (is_body, &tools) {
            (false, None) => text(out, &list)?,
            _ => {
                if let Some(tools) = &tools {
                    body = body.raw("tools", tools);
                }
                text(out, &body.raw("messages", list).end())?;
            }
        }
        Ok(messages.iter().filter(|m| m.role != Role::System).count())
    }

    /// The tools as the target takes them.
    fn written_tools(&self, to: Format, left_out: &mut LeftOut) -> Option<String> {
        let recorded = self.tools().ok()??;
        let raw: &RawValue = serde_json::from_str(&recorded).ok()?;
        let (written, others) = match to {
            Format::Anthropic => tools::to_anthropic(raw),
            _ => tools::to_openai(raw),
        };
        if !others.is_empty() {
            left_out.say(format!("{} tools that are no functions", others.len()));
        }
        (written != "[]").then_some(written)
    }

    /// Every message of the main line. Summaries of history that is not in the file are part of it.
    fn said(&self) -> Result<Vec<Arc<Entry>>> {
        let mut entries = self.summaries();
        entries.extend(self.main_line()?.into_iter().map(|item| item.entry));
        Ok(entries)
    }

    /// PonyBunny's `compactedHistory`: what it sums up is gone.
    pub(crate) fn summaries(&self) -> Vec<Arc<Entry>> {
        let summaries = (0..self.entries.len())
            .filter(|&i| self.entries.get(i).is_some_and(|e| e.recipe == Recipe::PonyBunnySummary));
        self.items(summaries).into_iter().map(|item| item.entry).collect()
    }

    fn all_said(&self) -> Result<Vec<Message>> {
        let mut messages = Vec::new();
        if let Some(system) = self.system_prompt()? {
            messages.push(Message::text(Role::System, system));
        }
        for entry in self.said()? {
            messages.push(entry.message()?.as_ref().clone());
        }
        Ok(messages)
    }

    /// Writes a linear pi session. Compactions keep their place; they keep nothing of what was
    /// before them, which is what they say by naming themselves.
    fn to_pi<W: Write + ?Sized>(&self, out: &mut W, left_out: &mut LeftOut) -> Result<usize> {
        let mut copy = PiCopy { out, parent: None };
        let mut names: HashMap<CallId, String> = HashMap::new();
        line(copy.out, &self.fresh_header())?;
        for (kind, value) in [
            (SYSTEM_PROMPT, self.system_prompt()?.map(|text| quote(&text))),
            (TOOLS, self.tools()?),
        ] {
            let Some(value) = value else { continue };
            let entry = Fresh::new().text("customType", kind).raw("data", value);
            copy.entry("custom", kind, None, &entry)?;
        }
        let summaries = self.summaries();
        if let Some(first) = summaries.first() {
            let mut texts = Vec::new();
            for entry in &summaries {
                texts.push(entry.message()?.plain_text());
            }
            let whole = Message::text(Role::CompactionSummary, texts.join("\n\n"));
            copy.compaction(&Entry::held(first.id().clone(), whole))?;
        }
        let path = self.path(None)?.into_iter().filter(|&index| {
            self.entries.get(index).filter(|entry| !entry.is_overlay()).is_some_and(|entry| {
                let compaction = matches!(entry.detail.as_deref(), Some(Detail::Compaction { .. }));
                let sent = self.is_sent(index) && entry.role != Some(Role::CompactionSummary);
                compaction || sent || is_error(entry)
            })
        });
        let items = self.items(path);
        let mut written = 0;
        for item in items {
            let message = item.entry.message()?;
            if message.role == Role::CompactionSummary {
                copy.compaction(&item.entry)?;
                continue;
            }
            written += 1;
            left_out.of_message(&message, Format::Pi);
            let failed = self.index_of(item.entry.id()).and_then(|index| self.entries.get(index));
            let mut message = self.with_provider(&message);
            if failed.is_some_and(is_error) {
                message.meta.stop_reason = Some("error".to_owned());
                message.meta.error_message = Some(message.plain_text());
            }
            name_results(&mut message, &mut names);
            let parts = pi::write(&message);
            for (n, part) in parts.iter().enumerate() {
                let id = match n {
                    0 => item.entry.id().to_string(),
                    n => format!("{}.{n}", item.entry.id()),
                };
                let entry = Fresh::new().raw("message", part);
                copy.entry("message", &id, item.entry.timestamp(), &entry)?;
            }
        }
        Ok(written)
    }

    /// Answers name their provider in pi; elsewhere the format implies it.
    fn with_provider(&self, message: &Message) -> Message {
        let mut message = message.clone();
        if message.role != Role::Assistant {
            return message;
        }
        let (provider, api) = match self.format {
            Format::ClaudeCode | Format::Anthropic => ("anthropic", "anthropic-messages"),
            Format::Codex => ("openai", "openai-responses"),
            _ => ("openai", "openai-completions"),
        };
        let meta = &mut message.meta;
        meta.provider.get_or_insert_with(|| provider.to_owned());
        meta.api.get_or_insert_with(|| api.to_owned());
        if meta.model.is_none() {
            meta.model = self.model.as_ref().map(|(_, model)| model.clone());
        }
        message
    }
}

/// Whether the agent noted an error of the provider as an answer. It is not sent, but kept.
fn is_error(entry: &TreeEntry) -> bool {
    entry.audience == Audience::People && entry.role == Some(Role::Assistant)
}

/// Gives results the names of their tools, which pi has beside the results as well.
fn name_results(message: &mut Message, names: &mut HashMap<CallId, String>) {
    names.extend(message.tool_calls().map(|call| (call.id.clone(), call.name.clone())));
    for block in &mut message.blocks {
        if let Block::ToolResult(result) = block
            && result.name.is_none()
        {
            result.name = names.get(&result.call_id).cloned();
        }
    }
}

/// A pi session that is being written.
struct PiCopy<'o, W: Write + ?Sized> {
    out: &'o mut W,
    parent: Option<String>,
}

impl<W: Write + ?Sized> PiCopy<'_, W> {
    fn entry(
        &mut self,
        kind: &str,
        id: &str,
        time: Option<ctx_core::Timestamp>,
        rest: &Fresh,
    ) -> Result<()> {
        let parent = self.parent.as_deref().map_or("null".to_owned(), quote);
        let base = Fresh::new()
            .text("type", kind)
            .text("id", id)
            .raw("parentId", parent)
            .text("timestamp", &iso(time));
        line(self.out, &base.with(rest).end())?;
        self.parent = Some(id.to_owned());
        Ok(())
    }

    fn compaction(&mut self, entry: &Entry) -> Result<()> {
        let message = entry.message()?;
        let fields = Fresh::new()
            .text("summary", &message.plain_text())
            .text("firstKeptEntryId", entry.id())
            .plain("tokensBefore", message.meta.tokens_before.unwrap_or_default());
        self.entry("compaction", entry.id(), entry.timestamp(), &fields)
    }
}

pub(crate) fn text<W: Write + ?Sized>(out: &mut W, json: &str) -> Result<()> {
    out.write_all(json.as_bytes()).and_then(|()| out.write_all(b"\n")).map_err(write_error)
}
