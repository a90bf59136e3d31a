//! A transcript in another format.

use std::io::Write;
use std::sync::Arc;

use ctx_core::{Entry, Error, ErrorKind, Message, Result, Role};
use ctx_dialect::json::{Fresh, array, quote};
use ctx_dialect::{anthropic, openai_chat, pi, ponybunny};

use crate::entry::{Detail, EntryKind};
use crate::format::Format;
use crate::load::Recipe;
use crate::repair::{iso, line, write_error};
use crate::transcript::Transcript;

impl Transcript {
    /// Writes the transcript's messages in another format, and says how many. A pi session goes to
    /// pi whole, with all branches and, in version 3, byte for byte. Of other transcripts the main
    /// line is written, with everything that compactions left out; sidechains are not.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] for formats that are read only, [`ErrorKind::Io`] if writing
    /// fails, and what reading a message may give.
    pub fn convert<W: Write + ?Sized>(&self, to: Format, out: &mut W) -> Result<usize> {
        match to {
            Format::Pi if self.format == Format::Pi => {
                self.pi_copy(out)?;
                let is_message = |kind: &EntryKind| *kind == EntryKind::Message;
                Ok(self.entries.iter().filter(|e| is_message(&e.kind)).count())
            }
            Format::Pi => self.to_pi(out),
            Format::OpenAiChat => {
                let messages = self.all_said()?;
                let written = openai_chat::write(&messages);
                text(out, &array(written.iter().map(|m| m.as_str())))?;
                Ok(messages.iter().filter(|m| m.role != Role::System).count())
            }
            Format::Anthropic => {
                let messages = self.all_said()?;
                let written = anthropic::write(&messages);
                let body = Fresh::new()
                    .text_if("system", written.system.as_deref())
                    .raw("messages", array(written.messages.iter().map(|m| m.as_str())));
                text(out, &body.end())?;
                Ok(messages.iter().filter(|m| m.role != Role::System).count())
            }
            Format::PonyBunny => self.to_ponybunny(out),
            Format::ClaudeCode | Format::Codex => Err(Error::new(
                ErrorKind::InvalidInput,
                format!("'{to}' can be read but not written"),
            )
            .hint("formats that can be written: pi, openai, anthropic, ponybunny")),
        }
    }

    /// Every message of the main line. Summaries of history that is not in the file are part of it.
    fn said(&self) -> Result<Vec<Arc<Entry>>> {
        let mut entries = self.summaries();
        entries.extend(self.main_line()?.into_iter().map(|item| item.entry));
        Ok(entries)
    }

    /// PonyBunny's `compactedHistory`: what it sums up is gone.
    fn summaries(&self) -> Vec<Arc<Entry>> {
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

    fn to_ponybunny<W: Write + ?Sized>(&self, out: &mut W) -> Result<usize> {
        let mut messages = Vec::new();
        if let Some(system) = self.system_prompt()? {
            messages.extend(ponybunny::write(&Message::text(Role::System, system)));
        }
        let line = self.main_line()?;
        for item in &line {
            messages.extend(ponybunny::write(&*item.entry.message()?));
        }
        let mut summaries = Vec::new();
        for entry in self.summaries() {
            summaries.push(ponybunny::write_summary(&*entry.message()?));
        }
        let body =
            Fresh::new().raw("messages", array(messages)).raw("compactedHistory", array(summaries));
        text(out, &body.end())?;
        Ok(line.len())
    }

    /// Writes a linear pi session. Compactions keep their place; they keep nothing of what was
    /// before them, which is what they say by naming themselves.
    fn to_pi<W: Write + ?Sized>(&self, out: &mut W) -> Result<usize> {
        let mut copy = PiCopy { out, parent: None };
        line(copy.out, &self.fresh_header())?;
        for (kind, value) in [
            ("ctx.system_prompt", self.system_prompt()?.map(|text| quote(&text))),
            ("ctx.tools", self.tools()?),
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
            self.entries.get(index).is_some_and(|entry| {
                let compaction = matches!(entry.detail.as_deref(), Some(Detail::Compaction { .. }));
                compaction || (self.is_sent(index) && entry.role != Some(Role::CompactionSummary))
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
            let parts = pi::write(&self.with_provider(&message));
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

fn text<W: Write + ?Sized>(out: &mut W, json: &str) -> Result<()> {
    out.write_all(json.as_bytes()).and_then(|()| out.write_all(b"\n")).map_err(write_error)
}
