//! Converting a transcript of another format to a linear pi session.

use std::collections::{HashMap, HashSet};
use std::io::Write;

use ctx_core::{Block, CallId, Entry, Message, Result, Role, Timestamp};
use ctx_dialect::json::{Object, ObjectWriter, quote};
use ctx_dialect::pi;

use crate::entry::{Audience, Detail, EntryKind, TreeEntry};
use crate::formats::{Format, Omissions, PiLines};
use crate::schema::{Edits, SYSTEM_PROMPT_TYPE, TOOLS_TYPE, iso_or_epoch, write_json_line};
use crate::transcript::Transcript;

impl Transcript {
    /// Writes a linear pi session. Compactions keep their position; each names itself as its first
    /// kept entry, which means that nothing before it is kept.
    ///
    /// If `to` takes entries, those of the overlay are included at their positions.
    pub(crate) fn to_pi<W: Write + ?Sized>(
        &self,
        to: Format,
        out: &mut W,
        omissions: &mut Omissions,
    ) -> Result<usize> {
        let mut names: HashMap<CallId, String> = HashMap::new();
        let header = match to.takes_entries() {
            true => self.session_header(omissions),
            false => self.fresh_header(),
        };
        let mut copy = PiLines::new(out, &header)?;
        self.write_beginning(&mut copy)?;
        let path = self.path(None)?;
        let added = match to.takes_entries() {
            true => OverlayAdditions::on(self, &path, omissions),
            false => OverlayAdditions::default(),
        };
        let path = path.into_iter().filter(|&index| {
            self.entries.get(index).is_some_and(|entry| match entry.overlay {
                true => added.entries.contains(&index),
                false => is_written(self, index, entry),
            })
        });
        let mut written = 0;
        for (index, more) in self.messages_of(path) {
            if let Some(entry) = self.entries.get(index).filter(|entry| entry.overlay) {
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
            omissions.of_message(&message, to);
            let mut message = self.with_provider(&message);
            if self.entries.get(index).is_some_and(is_error) {
                message.meta.stop_reason = Some("error".to_owned());
                message.meta.error_message = Some(message.plain_text());
            }
            name_results(&mut message, &mut names);
            let time = time_of(item.entry.timestamp());
            copy.messages(item.entry.id(), &time, pi::write(&message))?;
        }
        Ok(written)
    }

    /// Writes the system prompt, the tools, and the summaries at the beginning as one.
    fn write_beginning<W: Write>(&self, copy: &mut PiLines<W>) -> Result<()> {
        for (kind, value) in [
            (SYSTEM_PROMPT_TYPE, self.system_prompt.as_deref().map(quote)),
            (TOOLS_TYPE, self.tools.clone()),
        ] {
            let Some(value) = value else { continue };
            copy.custom(kind, &value)?;
        }
        let summaries = self.summaries();
        if let Some(first) = summaries.first() {
            let mut texts = Vec::new();
            for entry in &summaries {
                texts.push(entry.message()?.plain_text());
            }
            let whole = Message::text(Role::CompactionSummary, texts.join("\n\n"));
            copy.compaction(&Entry::in_memory(first.id().clone(), whole))?;
        }
        Ok(())
    }

    /// Adds the provider to answers: pi records it, other formats imply it.
    fn with_provider(&self, message: &Message) -> Message {
        let mut message = message.clone();
        if message.role != Role::Assistant {
            return message;
        }
        let (provider, api) = self.format.0.provider;
        let meta = &mut message.meta;
        meta.provider.get_or_insert_with(|| provider.to_owned());
        meta.api.get_or_insert_with(|| api.to_owned());
        if meta.model.is_none() {
            meta.model = self.model.as_ref().map(|(_, model)| model.clone());
        }
        message
    }
}

/// Whether an entry of the file is part of a linear session: messages that are sent, summaries, and
/// answers that were errors.
fn is_written(transcript: &Transcript, index: usize, entry: &TreeEntry) -> bool {
    let sent = transcript.is_sent(index) && entry.role != Some(Role::CompactionSummary);
    entry.is_compaction() || sent || is_error(entry)
}

/// Whether the agent recorded a provider error as an answer. It is kept but not sent.
fn is_error(entry: &TreeEntry) -> bool {
    entry.audience == Audience::People && entry.role == Some(Role::Assistant)
}

/// Adds tool names to results, because pi also stores them with the results.
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

/// Returns an entry's time as JSON.
fn time_of(time: Option<Timestamp>) -> String {
    quote(&iso_or_epoch(time))
}

impl<W: Write> PiLines<W> {
    fn compaction(&mut self, entry: &Entry) -> Result<()> {
        let message = entry.message()?;
        let fields = ObjectWriter::new()
            .text("summary", &message.plain_text())
            .text("firstKeptEntryId", entry.id())
            .plain("tokensBefore", message.meta.tokens_before.unwrap_or_default());
        self.entry("compaction", entry.id(), &time_of(entry.timestamp()), &fields)
    }

    /// Writes an overlay entry, with its references updated.
    fn added(
        &mut self,
        transcript: &Transcript,
        entry: &TreeEntry,
        added: &OverlayAdditions,
    ) -> Result<()> {
        let text = transcript.text(entry)?;
        let Ok(object) = Object::parse(&text) else { return Ok(()) };
        let mut edits = Edits::new(&text, &object);
        edits.set("parentId", self.parent.clone());
        let id = |index: usize| transcript.entries.get(index).map(|entry| quote(&entry.id));
        match entry.detail.as_deref() {
            Some(Detail::Compaction { .. }) => {
                // An entry that keeps nothing names itself.
                let kept = entry.first_kept().and_then(|kept| added.message_from(kept));
                edits.set("firstKeptEntryId", kept.and_then(id).unwrap_or(quote(&entry.id)));
            }
            Some(Detail::Edit { target: Some(target) }) => {
                edits.set("targetId", id(added.head(transcript, *target)).unwrap_or_default());
            }
            _ => transcript.retarget(entry, &object, &mut edits),
        }
        write_json_line(&mut self.out, &edits.apply())?;
        self.parent = quote(&entry.id);
        Ok(())
    }
}

/// The overlay entries that are part of a linear session.
#[derive(Default)]
struct OverlayAdditions {
    entries: HashSet<usize>,
    /// The first entries of the written messages.
    messages: Vec<usize>,
}

impl OverlayAdditions {
    fn on(transcript: &Transcript, path: &[usize], omissions: &mut Omissions) -> Self {
        let mut missing = 0;
        let mut entries = HashSet::new();
        let mut messages = Vec::new();
        for &index in path {
            let Some(entry) = transcript.entries.get(index) else { continue };
            if !entry.overlay {
                let first = entry.head.is_none() && is_written(transcript, index, entry);
                messages.extend(first.then_some(index));
                continue;
            }
            let target = |target: Option<u32>| target.map(|target| target as usize);
            let has_place = match entry.detail.as_deref() {
                // A partly kept history is on a single line, which is not written.
                Some(Detail::Compaction { skip, .. }) => skip.is_none(),
                Some(Detail::Undo { target: undone }) => target(*undone).is_some_and(|undone| {
                    let of_file = |entry: &&TreeEntry| !entry.overlay;
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
        omissions.count(missing, "compaction", "in the overlay that cannot be represented");
        Self { entries, messages }
    }

    /// Returns the message that an entry is part of, or the first one after it.
    fn message_from(&self, index: usize) -> Option<usize> {
        let next = self.messages.partition_point(|&first| first < index);
        self.messages.get(next).copied()
    }

    fn head(&self, transcript: &Transcript, index: u32) -> usize {
        let entry = transcript.entries.get(index as usize);
        entry.and_then(|entry| entry.head).unwrap_or(index) as usize
    }
}
