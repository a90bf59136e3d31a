//! A transcript, opened.

use std::collections::{BTreeMap, HashMap};
use std::io::Read;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use ctx_core::{Entry, EntryId, Error, ErrorKind, RawJson, Result, Role, Usage};
use serde::Serialize;

use crate::annex::Annex;
use crate::builder::Builder;
use crate::detect::{Shape, detect};
use crate::entry::{Detail, EntryKind, TreeEntry};
use crate::format::Format;
use crate::header::Header;
use crate::load::{Part, Recipe, text_of};
use crate::problem::Problem;
use crate::read;
use crate::source::{Source, Span};
use crate::tree::Children;

/// A session's transcript: its header, its tree of entries, and how to read each message when it
/// is needed. Opening reads the file once and keeps a few hundred bytes an entry.
///
/// # Example
///
/// ```
/// use ctx_session::{Format, Transcript};
///
/// let json = r#"[{"role":"user","content":"hi"},{"role":"assistant","content":"hello"}]"#;
/// let transcript = Transcript::from_bytes(json.as_bytes().to_vec())?;
/// assert_eq!(transcript.format(), Format::OpenAiChat);
/// assert_eq!(transcript.main_line()?.iter().filter(|item| item.request).count(), 1);
/// # Ok::<(), ctx_core::Error>(())
/// ```
pub struct Transcript {
    pub(crate) source: Arc<Source>,
    pub(crate) format: Format,
    /// Whether the source is one value, not lines.
    pub(crate) is_document: bool,
    pub(crate) entries: Vec<TreeEntry>,
    /// What an overlay adds.
    pub(crate) annex: Option<Annex>,
    pub(crate) lost: Vec<Span>,
    header: Header,
    pub(crate) index: HashMap<EntryId, u32>,
    pub(crate) leaf: Option<u32>,
    labels: HashMap<EntryId, String>,
    name: Option<String>,
    system: Option<String>,
    tools: Option<String>,
    /// The fields of a request body that hold no messages.
    pub(crate) body: Vec<(String, RawJson)>,
    pub(crate) model: Option<(String, String)>,
    pub(crate) problems: Vec<Problem>,
    bad_lines: u64,
    bytes: u64,
    window: Option<u32>,
    auto_compacted_at: Option<u32>,
    pub(crate) children: OnceLock<Children>,
}

/// A transcript in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Stats {
    /// Entries, without the header and without what an overlay adds.
    pub entries: usize,
    /// Messages on all branches; one that was written over several lines counts once.
    pub messages: usize,
    /// Tool results in those messages.
    pub tool_results: usize,
    /// The size of the file.
    pub bytes: u64,
    /// Lines that are not clean JSON.
    pub bad_lines: u64,
}

impl Transcript {
    /// Opens a transcript; its format is found from its content.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`] and [`ErrorKind::Io`] if the file cannot be read,
    /// [`ErrorKind::UnknownFormat`] if it is empty, binary, a folder or of no known format. Damage
    /// is no error: see [`Transcript::problems`].
    pub fn open(path: &Path) -> Result<Self> {
        Self::read(Source::open(path)?)
    }

    /// Reads a transcript from memory.
    ///
    /// # Errors
    ///
    /// As [`Transcript::open`].
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self> {
        Self::read(Source::memory(bytes))
    }

    /// Reads a transcript from a stream, all of which is kept in memory: at most 2 GiB, and only
    /// if the first of them looks like a transcript.
    ///
    /// # Errors
    ///
    /// As [`Transcript::open`].
    pub fn from_reader(reader: impl Read) -> Result<Self> {
        Self::read(Source::stream(reader)?)
    }

    fn read(source: Source) -> Result<Self> {
        let bytes = source.len()?;
        match detect(&source)? {
            Shape::Lines(format) => {
                let source = Arc::new(match format {
                    Format::GeminiCli | Format::Opencode => read::translated(source, format)?,
                    _ => source,
                });
                let builder = read::lines(format, &source)?;
                Ok(Self::assemble(format, builder, bytes))
            }
            Shape::Document => {
                let strict = read::into_json(&source)?;
                let source = Arc::new(source.with_bytes(strict.json));
                let document = source.in_memory().and_then(|all| all.get(..strict.len));
                let text = std::str::from_utf8(document.unwrap_or_default());
                let mut document = read::Document::parse(text.unwrap_or_default(), &source.name())?;
                if strict.was_json5 && document.format == Format::OpenAiChat {
                    document.format = Format::PonyBunny;
                }
                let mut builder = document.read(&source)?;
                for (line, kind, note) in strict.notes {
                    builder.problems.note(line, kind, note);
                }
                builder.lost = strict.lost;
                let mut transcript = Self::assemble(document.format, builder, bytes);
                transcript.is_document = true;
                Ok(transcript)
            }
        }
    }

    fn assemble(format: Format, builder: Builder, bytes: u64) -> Self {
        let mut entries = builder.entries;
        entries.shrink_to_fit();
        let (problems, bad_lines) = builder.problems.finish();
        let leaf = builder.tip.and_then(|tip| moved_leaf(&entries, tip));
        Self {
            source: builder.source,
            format,
            is_document: false,
            entries,
            annex: None,
            lost: builder.lost,
            header: builder.header,
            index: builder.index,
            leaf,
            labels: builder.labels,
            name: builder.name,
            system: builder.system,
            tools: builder.tools,
            body: builder.body,
            model: builder.model,
            problems,
            bad_lines,
            bytes,
            window: builder.window,
            auto_compacted_at: builder.auto_compacted_at,
            children: OnceLock::new(),
        }
    }

    /// The format.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// The header.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// What was wrong with the file, and how it was read all the same.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// The file, unless the transcript was read from memory.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        self.source.path()
    }

    /// The session's name: what `session_info` said last, or the agent's own title.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The system prompt, where the transcript has it: Codex's instructions, Anthropic's `system`,
    /// the system messages at the beginning of a chat. It is not on the main line.
    ///
    /// # Errors
    ///
    /// None today; reading it on demand may fail later.
    pub fn system_prompt(&self) -> Result<Option<String>> {
        Ok(self.system.clone())
    }

    /// The tool schemas as JSON text, where the transcript has them.
    ///
    /// # Errors
    ///
    /// None today; reading them on demand may fail later.
    pub fn tools(&self) -> Result<Option<String>> {
        Ok(self.tools.clone())
    }

    /// The model's window in tokens, where the provider told the agent and the agent wrote it down.
    #[must_use]
    pub fn window(&self) -> Option<u32> {
        self.window
    }

    /// How many tokens the context had when the agent last compacted it by itself, because the
    /// model's window was nearly full. `None` where no such compaction is recorded, or another model
    /// answered since.
    #[must_use]
    pub fn auto_compacted_at(&self) -> Option<u32> {
        self.auto_compacted_at
    }

    /// Every entry, in the order of the file; of a file that stands the wrong way round, parents
    /// first. What an overlay adds follows the entry it was added to.
    #[must_use]
    pub fn entries(&self) -> &[TreeEntry] {
        &self.entries
    }

    /// The entry that the next one will follow; where an overlay has something to say of that one,
    /// the overlay's newest entry.
    #[must_use]
    pub fn leaf(&self) -> Option<&EntryId> {
        self.entries.get(self.leaf? as usize).map(TreeEntry::id)
    }

    pub(crate) fn leaf_index(&self) -> Option<usize> {
        self.leaf.map(|leaf| leaf as usize)
    }

    /// The index of the entry `id`. If several were recorded under it, the latest.
    #[must_use]
    pub fn index_of(&self, id: &str) -> Option<usize> {
        self.index.get(id).map(|&index| index as usize)
    }

    /// The id of the entry a person named: in full, or by an unambiguous beginning.
    #[must_use]
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

    /// The bytes of an entry as they stand in the file, or in the overlay.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`] if there is no such entry, [`ErrorKind::Io`] if the file cannot be
    /// read.
    pub fn raw_line(&self, index: usize) -> Result<Vec<u8>> {
        let entry = self.entries.get(index).ok_or_else(|| {
            Error::new(ErrorKind::NotFound, "no such entry in the transcript").with("index", index)
        })?;
        self.source_of(entry).read(entry.span)
    }

    pub(crate) fn text(&self, entry: &TreeEntry) -> Result<String> {
        text_of(self.source_of(entry), entry)
    }

    /// The labels: entry id to label. The last one set wins, an empty one clears.
    #[must_use]
    pub fn labels(&self) -> BTreeMap<String, String> {
        self.labels.iter().map(|(id, label)| (id.to_string(), label.clone())).collect()
    }

    /// The transcript in numbers. Formats that do not write one message a line, one result a
    /// message are read through for it.
    ///
    /// # Errors
    ///
    /// What reading a message may give.
    pub fn stats(&self) -> Result<Stats> {
        let mut stats = Stats {
            entries: self.file_entries().count(),
            bytes: self.bytes,
            bad_lines: self.bad_lines,
            ..Stats::default()
        };
        for entry in self.messages() {
            stats.messages += usize::from(entry.head.is_none());
            stats.tool_results += match (&entry.role, entry.recipe) {
                (Some(Role::ToolResult), Recipe::Pi | Recipe::OpenAiChat | Recipe::Responses) => 1,
                (Some(Role::Assistant), _) | (_, Recipe::Pi) => 0,
                _ => Part::of(entry).load(&self.source)?.tool_results().count(),
            };
        }
        Ok(stats)
    }

    /// All messages of the file, on all branches, in file order.
    #[must_use]
    pub fn all_messages(&self) -> Vec<Arc<Entry>> {
        let all = self.entries.iter().enumerate().filter(|(_, entry)| is_message(entry));
        let items = self.items(all.map(|(index, _)| index));
        items.into_iter().map(|item| item.entry).collect()
    }

    /// Every answer of a model, on all branches, in file order: each was paid for. Answers of
    /// subagents (Claude Code's sidechains) and those that a client made up are not among them.
    ///
    /// # Errors
    ///
    /// None today; reading it on demand may fail later.
    pub fn answers(&self) -> Result<Vec<Arc<Entry>>> {
        let indices = match self.format {
            Format::ClaudeCode => self.path(None)?,
            _ => (0..self.entries.len()).collect(),
        };
        let items = self.items(indices.into_iter().filter(|&index| self.is_sent(index)));
        Ok(items.into_iter().filter(|item| item.request).map(|item| item.entry).collect())
    }

    /// The largest plausible prompt that the provider reported of the model that answers now.
    ///
    /// # Errors
    ///
    /// Where an answer cannot be read.
    pub fn largest_prompt(&self) -> Result<Option<u64>> {
        let model = self.model()?.map(|(_, model)| model);
        let mut largest = None;
        for entry in self.answers()? {
            let meta = &entry.message()?.meta;
            if meta.model.is_none() || meta.model == model {
                let usage = meta.usage.filter(Usage::is_plausible);
                largest = largest.max(usage.map(|usage| usage.prompt()));
            }
        }
        Ok(largest)
    }

    fn messages(&self) -> impl Iterator<Item = &TreeEntry> {
        self.entries.iter().filter(|entry| is_message(entry))
    }
}

/// A `message` entry may come without its message.
fn is_message(entry: &TreeEntry) -> bool {
    entry.kind == EntryKind::Message && entry.recipe != Recipe::Nothing
}

/// The leaf after the last entry: where a `leaf` entry moved it, else the entry itself.
fn moved_leaf(entries: &[TreeEntry], tip: u32) -> Option<u32> {
    match entries.get(tip as usize)?.detail.as_deref() {
        Some(Detail::Leaf { target }) => *target,
        _ => Some(tip),
    }
}

impl std::fmt::Debug for Transcript {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transcript")
            .field("source", &self.source.name())
            .field("format", &self.format)
            .field("entries", &self.entries.len())
            .field("problems", &self.problems.len())
            .finish()
    }
}
