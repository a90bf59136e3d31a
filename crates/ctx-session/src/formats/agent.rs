//! Agents: where they store their sessions, and how to read parts of one without parsing it all.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use ctx_core::text::Slice;
use ctx_core::{Result, Usage};
use ctx_dialect::json::Object;

use crate::formats::{Format, FormatSpec, lines, open};
use crate::source::Span;

/// An agent whose sessions ctx finds.
#[derive(Clone, Copy)]
pub struct Agent(pub(crate) &'static AgentSpec);

/// The properties of an agent.
pub(crate) struct AgentSpec {
    /// The name on the command line and in JSON.
    pub(crate) name: &'static str,
    /// Returns the folders of its sessions.
    pub(crate) folders: fn(&Environment) -> Vec<Option<PathBuf>>,
    /// The paths of sessions below such a folder, one pattern per level; `*` matches any text.
    pub(crate) layouts: &'static [&'static [&'static str]],
    /// The window it uses until a prompt needs the model's larger window.
    pub(crate) usual_window: Option<u32>,
    /// Whether it writes an answer in several steps.
    pub(crate) writes_in_steps: bool,
}

impl AgentSpec {
    pub(super) const NONE: Self = Self {
        name: "",
        folders: |_| Vec::new(),
        layouts: &[],
        usual_window: None,
        writes_in_steps: false,
    };
}

impl Agent {
    /// Returns the name on the command line and in JSON.
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// Returns the names of all agents.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Self::all().map(Self::name)
    }

    /// Returns the agent with that name.
    pub fn find(name: &str) -> Option<Self> {
        Self::all().find(|agent| agent.name() == name)
    }

    /// Returns the window in tokens that the agent uses until a prompt needs a larger one.
    pub fn usual_window(self) -> Option<u32> {
        self.0.usual_window
    }

    /// Returns whether the last answer of a session may still grow, because the agent writes it in
    /// several steps.
    pub fn writes_in_steps(self) -> bool {
        self.0.writes_in_steps
    }

    pub(crate) fn all() -> impl Iterator<Item = Self> {
        Format::ALL.iter().flat_map(|format| format.0.agents).copied()
    }

    /// Returns the format of its sessions.
    pub(crate) fn format(self) -> &'static FormatSpec {
        let of_agent = |format: &&Format| format.0.agents.contains(&self);
        Format::ALL.iter().find(of_agent).map_or(&FormatSpec::NONE, |format| format.0)
    }
}

/// The user's home, and the folders in environment variables.
pub(crate) struct Environment {
    home: Option<PathBuf>,
}

impl Environment {
    pub(crate) fn current() -> Self {
        Self { home: std::env::home_dir().filter(|home| !home.as_os_str().is_empty()) }
    }

    /// Returns the folder that a variable names. A leading `~` is the user's home.
    pub(super) fn var(&self, name: &str) -> Option<PathBuf> {
        let path = PathBuf::from(std::env::var_os(name).filter(|path| !path.is_empty())?);
        let rest = path.strip_prefix("~").ok().zip(self.home.as_ref());
        Some(rest.map(|(rest, home)| home.join(rest)).unwrap_or(path))
    }

    /// Returns a folder below the one that a variable names; if unset, below `default` in the home.
    pub(super) fn below(&self, name: &str, default: &str, folder: &str) -> Option<PathBuf> {
        let home = || self.home.as_ref().map(|home| home.join(default));
        Some(self.var(name).or_else(home)?.join(folder))
    }
}

/// A database in which an agent stores sessions. Such a session has the path `FILE/ID`.
pub(crate) struct Database {
    pub(crate) agent: Agent,
    /// The pattern of its file's name.
    pub(crate) files: &'static str,
    /// Splits a path into the file and the id.
    pub(crate) parts: fn(&Path) -> Option<(&Path, &str)>,
    /// Returns all sessions, or the one with that id.
    pub(crate) sessions: fn(&Path, Option<&str>) -> Result<Vec<DatabaseSession>>,
    /// Returns the session with that id as a transcript.
    pub(crate) export: fn(&Path, &str) -> Result<Vec<u8>>,
}

/// A session in a database: id, project folder, time of the last write (milliseconds since 1970),
/// size in bytes.
pub(crate) type DatabaseSession = (String, String, i64, i64);

/// Whether a name matches a pattern with at most one `*`. The files of subagents never match,
/// because they are not separate sessions.
pub(crate) fn fits(name: &str, pattern: &str) -> bool {
    let Some((begin, end)) = pattern.split_once('*') else { return name == pattern };
    let is_subagent = name.starts_with("agent-") && end == ".jsonl";
    name.len() >= begin.len() + end.len()
        && name.starts_with(begin)
        && name.ends_with(end)
        && !is_subagent
}

/// The details at the beginning of a session's file.
#[derive(Default)]
pub(crate) struct Beginning {
    pub(crate) agent: Option<Agent>,
    pub(crate) id: Option<String>,
    pub(crate) cwd: Option<String>,
    pub(crate) has_message: bool,
    pub(crate) is_subagent: bool,
}

impl Beginning {
    /// Reads the beginning of a file in a folder of `agent`.
    pub(crate) fn of(bytes: &[u8], agent: Agent) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let of_format = |format: Format| match format.0.agents {
            [only] => Some(*only),
            // Several agents use the format: the folder decides.
            several => several.first().map(|_| agent),
        };
        let mut known = Self { agent: lines(bytes).and_then(of_format), ..Self::default() };
        let mut text = &*text;
        while let Some(agent) = known.agent.filter(|_| !text.is_empty() && !known.is_whole()) {
            // Reads the first fields: the last line may be cut off, and a document has many lines.
            let line = Object::parse_prefix(text).0;
            let kind = line.text("type").unwrap_or_default();
            (agent.format().note_beginning)(&kind, &line, &mut known);
            text = text.split_once('\n').map_or("", |(_, rest)| rest);
        }
        known
    }

    pub(crate) fn is_whole(&self) -> bool {
        let has_late_folder = self.agent.is_some_and(|agent| agent.format().has_late_folder);
        let has_folder = self.cwd.is_some() || !has_late_folder;
        self.is_subagent || (self.id.is_some() && has_folder && self.has_message)
    }

    pub(super) fn take(&mut self, object: &Object<'_>, id: &str) {
        self.id = self.id.take().or_else(|| object.id(id).map(Cow::into_owned));
        self.cwd = self.cwd.take().or_else(|| object.owned("cwd"));
    }
}

/// The usage that a provider reported for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastUsage {
    /// Prompt tokens: fresh, read from the cache, written to it.
    pub prompt_tokens: u64,
    /// The model.
    pub model: Option<String>,
    /// The context window of the model, if the agent recorded it.
    pub window: Option<u32>,
}

impl LastUsage {
    /// Returns `None` for an empty report.
    pub(super) fn of(usage: Usage, model: Option<String>, window: Option<u32>) -> Option<Self> {
        let prompt_tokens = Some(usage.prompt()).filter(|tokens| *tokens > 0)?;
        Some(Self { prompt_tokens, model, window })
    }

    /// Finds the usage in the newest line that reports it.
    pub(super) fn in_lines(path: &Path, find: fn(&Object<'_>) -> Option<Self>) -> Option<Self> {
        Self::in_end(path, |end| {
            end.rsplit(|byte| *byte == b'\n').find_map(|line| {
                // Most lines are tool results: they are not parsed.
                memchr::memmem::find(line, b"usage")?;
                find(&Object::parse_prefix(std::str::from_utf8(line).ok()?).0)
            })
        })
    }

    /// Finds the usage at the end of a file. A line that begins before the bytes read is skipped.
    pub(super) fn in_end(path: &Path, find: impl Fn(&[u8]) -> Option<Self>) -> Option<Self> {
        /// The bytes to read at first, and at most.
        const ENDS: [u64; 2] = [64 << 10, 2 << 20];
        let source = open(path).ok()?;
        let size = source.len().ok()?;
        for look in ENDS {
            let offset = size.saturating_sub(look);
            let span = Span { offset, len: u32::try_from(size - offset).ok()? };
            let bytes = source.read(span).ok()?;
            let cut = bytes.iter().position(|byte| *byte == b'\n').filter(|_| offset > 0);
            let found = find(bytes.slice(cut.map_or(0, |at| at + 1)..));
            if found.is_some() || offset == 0 {
                return found;
            }
        }
        None
    }
}
