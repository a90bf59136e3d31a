//! An open transcript: its tree of entries, and the messages of its branches.

mod branch;
mod context;
mod inspect;
mod overlay_entries;
mod place;
mod projections;
mod tree;

use std::collections::{BTreeMap, HashMap};
use std::io::Read;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use ctx_core::{Entry, EntryId, Error, ErrorKind, RawJson, Result, Role, Usage};
use serde::Serialize;

use crate::entry::{Detail, EntryKind, MessageEncoding, MessagePart, TreeEntry};
use crate::formats::{self, Format};
use crate::read;
use crate::read::{Builder, Problem, TranscriptHeader};
use crate::source::{Source, Span};
use overlay_entries::OverlayEntries;

pub(crate) use branch::Branch;
pub use context::{BranchMessage, SessionContext};
pub use place::FilePlace;
pub(crate) use projections::read_projections;
pub(crate) use tree::Ancestry;

/// A session's transcript: its header, its tree of entries, and access to each message on demand.
/// Opening reads the file once and keeps a few hundred bytes per entry.
///
/// # Example
///
/// ```
/// use ctx_session::{Format, Transcript};
///
/// let json = r#"[{"role":"user","content":"hi"},{"role":"assistant","content":"hello"}]"#;
/// let transcript = Transcript::from_bytes(json.as_bytes().to_vec())?;
/// assert_eq!(transcript.format, Format::OPENAI_CHAT);
/// assert_eq!(transcript.main_line()?.iter().filter(|item| item.request).count(), 1);
/// # Ok::<(), ctx_core::Error>(())
/// ```
pub struct Transcript {
    /// The format.
    pub format: Format,
    /// The header.
    pub header: TranscriptHeader,
    /// The problems of the file, and how they were handled.
    pub problems: Vec<Problem>,
    /// The session's name: the last `session_info`, or the agent's own title.
    pub name: Option<String>,
    /// The system prompt, if the transcript has it: Codex's instructions, Anthropic's `system`, the
    /// system messages at the beginning of a chat. It is not on the main line.
    pub system_prompt: Option<String>,
    /// The tool schemas as JSON text, if the transcript has them.
    pub tools: Option<String>,
    /// The labels: entry id to label. The last label set wins, and an empty one clears it.
    pub labels: BTreeMap<EntryId, String>,
    /// The context window in tokens, if the provider reported it and the agent recorded it.
    pub window: Option<u32>,
    /// The size of the context in tokens when the agent last compacted automatically, because the
    /// window was nearly full. `None` if no such compaction is recorded, or another model has
    /// answered since.
    pub auto_compacted_at: Option<u32>,
    pub(crate) source: Arc<Source>,
    /// Whether the source is a single value instead of lines.
    pub(crate) is_document: bool,
    /// Every entry, in the order of the file; if the file is in reverse order, parents first. An
    /// overlay entry follows the entry that it is attached to.
    pub entries: Vec<TreeEntry>,
    /// The entries of an overlay.
    pub(crate) overlay_entries: Option<OverlayEntries>,
    pub(crate) lost: Vec<Span>,
    pub(crate) index: HashMap<EntryId, u32>,
    pub(crate) leaf: Option<u32>,
    /// The fields of a request body other than its messages.
    pub(crate) body: Vec<(String, RawJson)>,
    pub(crate) model: Option<(String, String)>,
    bad_lines: u64,
    bytes: u64,
    reported: OnceLock<Vec<ReportedAnswer>>,
}

/// What the provider reported with an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportedAnswer {
    /// The entry of the answer.
    pub entry: EntryId,
    /// The model that wrote it, if it is recorded.
    pub model: Option<String>,
    /// The tokens.
    pub usage: Usage,
}

/// Statistics of a transcript.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TranscriptStats {
    /// Entries, without the header and the overlay.
    pub entries: usize,
    /// Messages on all branches; a message that spans several lines counts once.
    pub messages: usize,
    /// Tool results in those messages.
    pub tool_results: usize,
    /// The size of the file.
    pub bytes: u64,
    /// Damaged lines.
    pub bad_lines: u64,
}

impl Transcript {
    /// Opens a transcript; its format is detected from its content.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`] and [`ErrorKind::Io`] if the file cannot be read,
    /// [`ErrorKind::UnknownFormat`] if it is empty, binary, a folder or in an unknown format.
    /// Damage is not an error: see [`Transcript::problems`].
    pub fn open(path: &Path) -> Result<Self> {
        Self::read(formats::open(path)?)
    }

    /// Reads a transcript from memory.
    ///
    /// # Errors
    ///
    /// Those of [`Transcript::open`].
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self> {
        Self::read(Source::memory(bytes))
    }

    /// Reads a transcript from a stream into memory: at most 2 GiB, and only if the beginning looks
    /// like a transcript.
    ///
    /// # Errors
    ///
    /// Those of [`Transcript::open`].
    pub fn from_reader(reader: impl Read) -> Result<Self> {
        Self::read(Source::stream(reader, formats::check_beginning)?)
    }

    fn read(source: Source) -> Result<Self> {
        let bytes = source.len()?;
        if let Some(format) = formats::detect(&source)? {
            return Ok(Self::assemble(format, format.read(source)?, bytes));
        }
        let strict = read::into_json(&source)?;
        let source = Arc::new(source.with_bytes(strict.json));
        let document = source.in_memory().and_then(|all| all.get(..strict.len));
        let text = std::str::from_utf8(document.unwrap_or_default()).unwrap_or_default();
        let document = read::Document::parse(text, strict.was_json5, &source.name())?;
        let format = formats::document_format(&document);
        let mut builder = document.read(&source, format.0.provider.0, format.0.encoding)?;
        for (line, kind, note) in strict.notes {
            builder.problems.note(line, kind, note);
        }
        builder.lost = strict.lost;
        Ok(Self { is_document: true, ..Self::assemble(format, builder, bytes) })
    }

    fn assemble(format: Format, builder: Builder, bytes: u64) -> Self {
        let mut entries = builder.entries;
        entries.shrink_to_fit();
        let (problems, bad_lines) = builder.problems.finish();
        // A `leaf` entry at the end moves the leaf to its target.
        let leaf = builder.tip.and_then(|tip| match entries.get(tip as usize)?.detail.as_deref() {
            Some(Detail::Leaf { target }) => *target,
            _ => Some(tip),
        });
        Self {
            format,
            header: builder.header,
            problems,
            name: builder.name,
            system_prompt: builder.system,
            tools: builder.tools,
            labels: builder.labels,
            window: builder.window,
            auto_compacted_at: builder.auto_compacted_at,
            source: builder.source,
            is_document: false,
            entries,
            overlay_entries: None,
            lost: builder.lost,
            index: builder.index,
            leaf,
            body: builder.body,
            model: builder.model,
            bad_lines,
            bytes,
            reported: OnceLock::new(),
        }
    }

    /// Returns the file, unless the transcript was read from memory.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.source.path()
    }

    /// Returns the parent of the next entry. If overlay entries are attached to the file's leaf,
    /// this is the newest of them.
    pub fn leaf(&self) -> Option<&EntryId> {
        self.entries.get(self.leaf? as usize).map(|entry| &entry.id)
    }

    pub(crate) fn leaf_index(&self) -> Option<usize> {
        self.leaf.map(|leaf| leaf as usize)
    }

    /// Returns the index of the entry `id`; the latest if several were recorded under it.
    pub fn index_of(&self, id: &str) -> Option<usize> {
        self.index.get(id).map(|&index| index as usize)
    }

    /// Returns the full id of the entry with this id or unambiguous prefix of an id.
    pub fn find(&self, id: &str) -> Option<EntryId> {
        let entry = |index: usize| self.entries.get(index).map(|entry| entry.id.clone());
        if let Some(index) = self.index_of(id) {
            return entry(index);
        }
        if id.is_empty() {
            return None;
        }
        let mut matches = self.entries.iter().filter(|entry| entry.id.starts_with(id));
        let found = matches.next()?;
        matches.next().is_none().then(|| found.id.clone())
    }

    /// Returns the bytes of an entry as written in the file or the overlay.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`] for an invalid index, [`ErrorKind::Io`] if the file cannot be read.
    pub fn raw_line(&self, index: usize) -> Result<Vec<u8>> {
        let entry = self.entries.get(index).ok_or_else(|| {
            Error::new(ErrorKind::NotFound, "invalid entry index in the transcript")
                .with("index", index)
        })?;
        self.source_of(entry).read(entry.place.span)
    }

    pub(crate) fn text(&self, entry: &TreeEntry) -> Result<String> {
        self.source_of(entry).text(entry.place)
    }

    /// Returns statistics. For formats with several messages per line or several results per
    /// message, this reads all messages.
    ///
    /// # Errors
    ///
    /// Errors from reading a message.
    pub fn stats(&self) -> Result<TranscriptStats> {
        let mut stats = TranscriptStats {
            entries: self.file_entries().count(),
            bytes: self.bytes,
            bad_lines: self.bad_lines,
            ..TranscriptStats::default()
        };
        for entry in self.entries.iter().filter(|entry| is_message(entry)) {
            stats.messages += usize::from(entry.head.is_none());
            stats.tool_results += match (&entry.role, entry.encoding) {
                (
                    Some(Role::ToolResult),
                    MessageEncoding::Pi | MessageEncoding::OpenAiChat | MessageEncoding::Responses,
                ) => 1,
                (Some(Role::Assistant), _) | (_, MessageEncoding::Pi) => 0,
                _ => MessagePart::of(entry).load(&self.source)?.tool_results().count(),
            };
        }
        Ok(stats)
    }

    /// Returns all messages of the file, on all branches, in file order.
    pub fn all_messages(&self) -> Vec<Arc<Entry>> {
        let all = self.entries.iter().enumerate().filter(|(_, entry)| is_message(entry));
        let items = self.items(all.map(|(index, _)| index));
        items.into_iter().map(|item| item.entry).collect()
    }

    /// Returns what the provider reported with each answer, on all branches, in file order, because each
    /// was paid for. Excludes answers of subagents (Claude Code's sidechains), those that a client
    /// generated, and reports that cannot be right. The answers are read once.
    ///
    /// # Errors
    ///
    /// If an answer cannot be read.
    pub fn reported(&self) -> Result<&[ReportedAnswer]> {
        if let Some(known) = self.reported.get() {
            return Ok(known);
        }
        let indices = match self.format.0.has_sidechains {
            true => self.path(None)?,
            false => (0..self.entries.len()).collect(),
        };
        let items = self.items(indices.into_iter().filter(|&index| self.is_sent(index)));
        let mut reported = Vec::new();
        for item in items.into_iter().filter(|item| item.request) {
            let message = item.entry.message()?;
            let (entry, model) = (item.entry.id().clone(), message.meta.model.clone());
            let usage = message.meta.usage.filter(Usage::is_plausible);
            reported.extend(usage.map(|usage| ReportedAnswer { entry, model, usage }));
        }
        Ok(self.reported.get_or_init(|| reported))
    }

    /// Returns the largest plausible prompt size that the provider reported for the current model.
    ///
    /// # Errors
    ///
    /// If an answer cannot be read.
    pub fn largest_prompt(&self) -> Result<Option<u64>> {
        let model = self.model()?.map(|(_, model)| model);
        let is_of_model =
            |answer: &&ReportedAnswer| answer.model.is_none() || answer.model == model;
        let answers = self.reported()?.iter().filter(is_of_model);
        Ok(answers.map(|answer| answer.usage.prompt()).max())
    }
}

/// Whether an entry is a message. An entry of the kind `message` may lack it.
fn is_message(entry: &TreeEntry) -> bool {
    entry.kind == EntryKind::Message && entry.encoding != MessageEncoding::Nothing
}

ctx_core::partial_debug!(
    Transcript,
    it,
    source = it.source.name(),
    format = it.format,
    entries = it.entries.len(),
    problems = it.problems.len()
);
