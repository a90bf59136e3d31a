//! The transcript formats: one folder each, and the list of them, [`Format::ALL`].

mod agent;
mod conversation;
mod detect;

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use ctx_core::{Block, Error, ErrorKind, Result, Role};
use ctx_dialect::json::Object;
use serde::{Serialize, Serializer};

use crate::entry::MessageEncoding;
use crate::read::{Builder, Document, read_messages};
use crate::source::Source;

use agent::AgentSpec;
pub use agent::{Agent, LastUsage};
pub(crate) use agent::{Beginning, Database, DatabaseSession, Environment, fits};
pub(crate) use conversation::{Conversation, Omissions};
use detect::Evidence;
pub(crate) use detect::{check_beginning, detect, document_format, lines};
pub(crate) use pi::PiLines;

/// A transcript format.
#[derive(Clone, Copy)]
pub struct Format(pub(crate) &'static FormatSpec);

/// Declares the module of each format, and lists the formats.
macro_rules! formats {
    ($($module:ident $format:ident)*) => {
        $(mod $module;)*

        impl Format {
            /// All formats. If several match a transcript equally well, the first one is used.
            pub const ALL: &[Self] = &[$(Self::$format),*];
        }
    };
}

// One line for each format: its folder, and the constant in it.
formats! {
    ctx CTX
    claude_code CLAUDE_CODE
    codex CODEX
    pi PI
    gemini_cli GEMINI_CLI
    opencode OPENCODE
    openai OPENAI_CHAT
    anthropic ANTHROPIC
    atif ATIF
    ponybunny PONYBUNNY
}

/// The properties of a format. Most formats set only a few of them.
pub(crate) struct FormatSpec {
    /// The name on the command line and in reports.
    pub(crate) name: &'static str,
    /// Whether the first object of a file shows that the whole file is in this format.
    pub(crate) begins: fn(&Object<'_>) -> bool,
    /// Judges an object on a line by its `type`, its fields, and whether it was parsed to its end.
    pub(crate) judge_line: fn(Option<&str>, &Object<'_>, bool) -> Option<Evidence>,
    /// Judges a message without an entry around it.
    pub(crate) judge_message: fn(&Object<'_>) -> Option<Evidence>,
    /// Judges a document as a whole, not by its single messages.
    pub(crate) judge_document: fn(&Document<'_>) -> Option<Evidence>,
    /// Reads a transcript; `None` if it consists of plain messages.
    pub(crate) read: Option<fn(Source) -> Result<Builder>>,
    /// The encoding of the messages in a transcript of plain messages.
    pub(crate) encoding: MessageEncoding,
    /// The provider and the API of answers that do not name them.
    pub(crate) provider: (&'static str, &'static str),
    /// The types of entries without a message that are not a problem, separated by spaces.
    pub(crate) known_entries: &'static str,
    /// Whether the branches beside the main line belong to subagents.
    pub(crate) has_sidechains: bool,
    /// How conversions write this format; `None` if it is only read.
    pub(crate) target: Option<Target>,
    /// Whether a conversion keeps a block of a message with that role.
    pub(crate) keeps: fn(&Role, &Block) -> bool,
    /// Whether a conversion keeps the time, model and usage of messages.
    pub(crate) keeps_meta: bool,
    /// The agents that store their sessions in this format.
    pub(crate) agents: &'static [Agent],
    /// The database in which the agent stores sessions.
    pub(crate) database: Option<&'static Database>,
    /// Reads id, folder and kind of a session from one of its first lines and the line's `type`.
    pub(crate) note_beginning: fn(&str, &Object<'_>, &mut Beginning),
    /// Whether the line that names the folder may come after the first message.
    pub(crate) has_late_folder: bool,
    /// Returns the folder in which a session was started, if the session itself does not name it.
    pub(crate) project: Option<fn(&Path) -> Option<PathBuf>>,
    /// Returns the usage that was reported last in a session.
    pub(crate) last_usage: fn(&Path) -> Option<LastUsage>,
}

impl FormatSpec {
    /// A format of chat messages that is only read.
    const NONE: Self = Self {
        name: "",
        begins: |_| false,
        judge_line: |_, _, _| None,
        judge_message: |_| None,
        judge_document: |_| None,
        read: None,
        encoding: MessageEncoding::OpenAiChat,
        provider: ("openai", "openai-completions"),
        known_entries: "",
        has_sidechains: false,
        target: None,
        keeps: |_, _| true,
        keeps_meta: true,
        agents: &[],
        database: None,
        note_beginning: |_, _, _| {},
        has_late_folder: false,
        project: None,
        last_usage: |_| None,
    };
}

/// How a conversion writes a format.
#[derive(Clone, Copy)]
pub(crate) enum Target {
    /// As a pi session or, with the overlay, a ctx session.
    Session { overlay: bool },
    /// As one JSON value.
    Document {
        /// Returns the value and the number of messages in it.
        write: fn(&Conversation, &mut Omissions) -> Result<(String, usize)>,
        /// Whether it can represent summaries of compacted history.
        summaries: bool,
    },
}

impl Format {
    /// Returns the name on the command line and in reports.
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// Returns the names of the formats that can be written.
    pub fn targets() -> impl Iterator<Item = &'static str> {
        Self::ALL.iter().filter(|format| format.0.target.is_some()).map(|format| format.name())
    }

    /// Returns whether ctx appends to sessions in this format.
    pub fn takes_entries(self) -> bool {
        matches!(self.0.target, Some(Target::Session { overlay: true }))
    }

    /// Returns whether the format can represent compacted history: see
    /// [`Transcript::convert_with`](crate::Transcript::convert_with).
    pub fn holds_compacted_history(self) -> bool {
        matches!(self.0.target, Some(Target::Document { summaries: true, .. }))
    }

    /// Whether it is pi's session format, with or without ctx's mark.
    pub(crate) fn is_pi(self) -> bool {
        matches!(self.0.target, Some(Target::Session { .. }))
    }

    /// Reads a transcript that is not one document of messages.
    pub(crate) fn read(self, source: Source) -> Result<Builder> {
        match self.0.read {
            Some(read) => read(source),
            None => read_messages(source, self.0.encoding),
        }
    }

    fn known() -> String {
        Self::ALL.iter().map(|format| format.name()).collect::<Vec<_>>().join(", ")
    }
}

impl FromStr for Format {
    type Err = Error;

    fn from_str(s: &str) -> Result<Self, Error> {
        Self::ALL.iter().find(|format| format.name() == s).copied().ok_or_else(|| {
            let text = format!("unknown format '{s}' (known: {})", Self::known());
            Error::new(ErrorKind::InvalidInput, text).hint("use one of the known formats")
        })
    }
}

/// Compares, prints and serializes formats and agents by name.
macro_rules! compared_by_name {
    ($($named:ty)*) => {$(
        impl PartialEq for $named {
            fn eq(&self, other: &Self) -> bool {
                self.name() == other.name()
            }
        }

        impl Eq for $named {}

        impl fmt::Debug for $named {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }

        impl Serialize for $named {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.name())
            }
        }
    )*};
}

compared_by_name!(Format Agent);

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Opens a file, or a session in a database.
pub(crate) fn open(path: &Path) -> Result<Source> {
    match in_database(path) {
        Some((database, file, id)) => {
            Ok(Source::memory((database.export)(file, id)?).at(path.to_owned()))
        }
        None => Source::open(path, check_beginning),
    }
}

/// Returns the database, its file and the id of a session with the path `FILE/ID`.
pub(crate) fn in_database(path: &Path) -> Option<(&'static Database, &Path, &str)> {
    databases().find_map(|database| {
        let (file, id) = (database.parts)(path)?;
        Some((database, file, id))
    })
}

/// Returns the databases of all agents.
pub(crate) fn databases() -> impl Iterator<Item = &'static Database> {
    Format::ALL.iter().filter_map(|format| format.0.database)
}

/// Whether a path names a file, or a session in a database.
pub fn is_transcript(path: &Path) -> bool {
    path.is_file() || in_database(path).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_and_agents_are_found_by_their_names() {
        for format in Format::ALL {
            assert_eq!(format.name().parse::<Format>().unwrap(), *format);
        }
        for agent in Agent::all() {
            assert_eq!(Agent::find(agent.name()), Some(agent));
            assert!(agent.format().agents.contains(&agent));
        }
    }
}
