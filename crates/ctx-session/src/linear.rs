//! A transcript of another format as a pi session: one line of messages.

use std::collections::{HashMap, HashSet};
use std::io::Write;

use ctx_core::{Block, CallId, Entry, Message, Result, Role};
use ctx_dialect::json::{Fresh, Object, quote};
use ctx_dialect::pi;

use crate::entry::{Audience, Detail, EntryKind, TreeEntry};
use crate::format::Format;
use crate::left_out::LeftOut;
use crate::read::{SYSTEM_PROMPT, TOOLS};
use crate::repair::{Edits, iso, line};
use crate::transcript::Transcript;

impl Transcript {
    /// Writes a linear pi session. Compactions keep their place; they keep nothing of what was
    /// before them, which is what they say by naming themselves.
    ///
    /// In a session of ctx, what stands beside the file has its place among them.
    pub(crate) fn to_pi<W: Write + ?Sized>(
        &self,
        to: Format,
        out: &mut W,
        left_out: &mut LeftOut,
    ) -> Result<usize> {
        let mut copy = PiCopy { out, parent: None };
        let mut names: HashMap<CallId, String> = HashMap::new();
        match to {
            Format::Ctx => line(copy.out, &self.session_header(left_out))?,
            _ => line(copy.out, &self.fresh_header())?,
        }
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
        let path = self.path(None)?;
        let added = match to {
            Format::Ctx => Added::on(self, &path, left_out),
            _ => Added::default(),
        };
        let path = path.into_iter().filter(|&index| {
            self.entries.get(index).is_some_and(|entry| match entry.is_overlay() {
                true => added.entries.contains(&index),
                false => is_written(self, index, entry),
            })
        });
        let mut written = 0;
        for (index, more) in self.messages_of(path) {
            if let Some(entry) = self.entries.get(index).filter(|entry| entry.is_overlay()) {
                copy.added(self, entry, &added)?;
                continue;
            }
            let Some(item) = self.item(index, more) else { continue };
            let message = item.entry.message()?;
            if message.role == Role::CompactionSummary {
                copy.compaction(&item.entry)?;
                continue;
            }
            written += 1;
            left_out.of_message(&message, Format::Pi);
            let mut message = self.with_provider(&message);
            if self.entries.get(index).is_some_and(is_error) {
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

/// Whether an entry of the file has a place in a linear session: what is sent, what stands for
/// what was before, and answers that were errors.
fn is_written(transcript: &Transcript, index: usize, entry: &TreeEntry) -> bool {
    let sent = transcript.is_sent(index) && entry.role != Some(Role::CompactionSummary);
    entry.is_compaction() || sent || is_error(entry)
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
pub(crate) struct PiCopy<'o, W: Write + ?Sized> {
    pub(crate) out: &'o mut W,
    pub(crate) parent: Option<String>,
}

impl<W: Write + ?Sized> PiCopy<'_, W> {
    pub(crate) fn entry(
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

    /// What ctx added beside the file, with what it names as that is now.
    fn added(&mut self, transcript: &Transcript, entry: &TreeEntry, added: &Added) -> Result<()> {
        let text = transcript.text(entry)?;
        let Ok(object) = Object::parse(&text) else { return Ok(()) };
        let mut edits = Edits::new(&text, &object);
        edits.set("parentId", self.parent.as_deref().map_or("null".to_owned(), quote));
        let id = |index: usize| transcript.entries.get(index).map(|entry| quote(&entry.id));
        match entry.detail.as_deref() {
            Some(Detail::Compaction { .. }) => {
                // One that keeps nothing names itself.
                let kept = entry.first_kept().and_then(|kept| added.message_from(kept));
                edits.set("firstKeptEntryId", kept.and_then(id).unwrap_or(quote(&entry.id)));
            }
            Some(Detail::Edit { target: Some(target) }) => {
                edits.set("targetId", id(added.head(transcript, *target)).unwrap_or_default());
            }
            _ => transcript.retarget(entry, &object, &mut edits),
        }
        line(self.out, &edits.apply())?;
        self.parent = Some(entry.id.to_string());
        Ok(())
    }
}

/// What of the entries beside the file goes into a linear session.
#[derive(Default)]
struct Added {
    entries: HashSet<usize>,
    /// The first entries of the messages that are written.
    messages: Vec<usize>,
}

impl Added {
    fn on(transcript: &Transcript, path: &[usize], left_out: &mut LeftOut) -> Self {
        let mut missing = 0;
        let mut entries = HashSet::new();
        let mut messages = Vec::new();
        for &index in path {
            let Some(entry) = transcript.entries.get(index) else { continue };
            if !entry.is_overlay() {
                let first = entry.head.is_none() && is_written(transcript, index, entry);
                messages.extend(first.then_some(index));
                continue;
            }
            let target = |target: Option<u32>| target.map(|target| target as usize);
            let has_place = match entry.detail.as_deref() {
                // What is kept in part is a history on a single line, which is not written.
                Some(Detail::Compaction { skip, .. }) => skip.is_none(),
                Some(Detail::Undo { target: undone }) => target(*undone).is_some_and(|undone| {
                    let of_file = |entry: &&TreeEntry| !entry.is_overlay();
                    entries.contains(&undone)
                        || transcript.entries.get(undone).filter(of_file).is_some()
                }),
                Some(Detail::Edit { target: edited }) => edited.is_some(),
                _ => entry.kind == EntryKind::Custom,
            };
            match has_place {
                true => drop(entries.insert(index)),
                false => missing += usize::from(entry.kind == EntryKind::Compaction),
            }
        }
        left_out.count(missing, "compaction", "beside the file that has no place here");
        Self { entries, messages }
    }

    /// The message an entry is part of, or else the first after it.
    fn message_from(&self, index: usize) -> Option<usize> {
        let next = self.messages.partition_point(|&first| first < index);
        self.messages.get(next).copied()
    }

    fn head(&self, transcript: &Transcript, index: u32) -> usize {
        let entry = transcript.entries.get(index as usize);
        entry.and_then(|entry| entry.head).unwrap_or(index) as usize
    }
}
