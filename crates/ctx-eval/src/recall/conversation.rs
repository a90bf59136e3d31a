//! Labelled conversations: what was said, what is asked, and which turns answer it.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use ctx_core::{Error, ErrorKind, Result, Role, Timestamp};
use ctx_memory::{Metadata, Segment, SegmentId};
use serde_json::Value;

use super::{beam, locomo};

/// How labelled conversations are written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A JSON file, or a folder of such: a conversation, or a list of them. Each has `conversation` with `session_N` (a
    /// list of turns with `dia_id`, `speaker` and `text`) and `session_N_date_time`, and `qa` (a list
    /// of `question`, `evidence` and `category`).
    Locomo,
    /// A folder with `chat.json` (batches of groups of messages with `id`, `role` and `content`) and
    /// `probing_questions.json` (lists of `question` and `source_chat_ids`, by category), or a folder
    /// of such folders.
    Beam,
}

impl Form {
    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Locomo => "locomo",
            Self::Beam => "beam",
        }
    }
}

impl FromStr for Form {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "locomo" => Ok(Self::Locomo),
            "beam" => Ok(Self::Beam),
            _ => {
                Err(Error::new(ErrorKind::InvalidInput, "no known form of labelled conversations")
                    .with("name", name)
                    .hint("locomo and beam are known"))
            }
        }
    }
}

/// A conversation and what is asked about it.
#[derive(Clone, Debug, Default)]
pub struct Conversation {
    /// Its name in errors.
    pub name: String,
    /// What was said, in order. The id of a turn is its place.
    pub turns: Vec<Segment>,
    /// What is asked, where turns that answer it are known.
    pub questions: Vec<Question>,
    /// Questions for which none are known.
    pub skipped: usize,
    /// References that were no turn as they stood, and plainly meant one.
    pub repaired: usize,
    /// References that are no turn.
    pub dropped: usize,
}

/// A question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// As it is asked.
    pub text: String,
    /// What kind of question it is.
    pub category: String,
    /// Whether it counts in the sum; questions that have no answer do not.
    pub counts: bool,
    /// The turns that answer it: places in [`Conversation::turns`], sorted, each once.
    pub evidence: Vec<usize>,
}

/// Reads labelled conversations.
///
/// # Errors
///
/// [`ErrorKind::Io`] where nothing can be read, [`ErrorKind::Corrupt`] where what is read is not of
/// the form, with the file and the place in it.
pub fn load(form: Form, path: &Path) -> Result<Vec<Conversation>> {
    let found = match form {
        Form::Locomo => locomo::load(path)?,
        Form::Beam => beam::load(path)?,
    };
    if found.iter().all(|conversation| conversation.questions.is_empty()) {
        return Err(Error::new(ErrorKind::Corrupt, "no question has a turn that answers it")
            .with("path", path.display())
            .with("conversations", found.len())
            .hint("the labels name turns by their ids: see `evidence` or `source_chat_ids`"));
    }
    Ok(found)
}

impl Conversation {
    /// Adds a turn, and gives its place.
    pub(super) fn say(
        &mut self,
        session: String,
        timestamp: Timestamp,
        role: Role,
        name: Option<String>,
        content: String,
    ) -> usize {
        let place = self.turns.len();
        self.turns.push(Segment {
            // What is said twice is two turns here.
            id: SegmentId(uuid::Uuid::from_u128(place as u128)),
            agent_id: self.name.clone(),
            session_id: session,
            timestamp,
            archived_at: None,
            role,
            name,
            content,
            tokens: 0,
            metadata: Metadata::default(),
            entry_id: None,
        });
        place
    }

    /// Adds a question, if anything answers it.
    pub(super) fn ask(&mut self, mut question: Question) {
        question.evidence.sort_unstable();
        question.evidence.dedup();
        if question.evidence.is_empty() {
            self.skipped += 1;
        } else {
            self.questions.push(question);
        }
    }
}

/// What is in a folder, by name.
pub(super) fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let unreadable = |e: std::io::Error| {
        Error::new(ErrorKind::Io, "cannot read the folder of labelled conversations")
            .with("path", folder.display())
            .source(e)
    };
    let listed = std::fs::read_dir(folder).map_err(unreadable)?;
    let mut paths = Vec::new();
    for entry in listed {
        paths.push(entry.map_err(unreadable)?.path());
    }
    paths.sort_unstable();
    Ok(paths)
}

/// A JSON file.
pub(super) fn read_json(path: &Path) -> Result<Value> {
    let text = ctx_disk::read_to_string(path).map_err(|e| {
        Error::new(ErrorKind::Io, "cannot read labelled conversations")
            .with("path", path.display())
            .hint("give the path of a dataset on this machine; none comes with the program")
            .source(e)
    })?;
    serde_json::from_str(&text).map_err(|e| {
        Error::new(ErrorKind::Corrupt, "labelled conversations are no JSON")
            .with("path", path.display())
            .source(e)
    })
}

/// Where in a file something is, for errors.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) path: PathBuf,
    pub(super) at: String,
}

impl Place {
    pub(super) fn of(path: &Path) -> Self {
        Self { path: path.to_owned(), at: String::new() }
    }

    pub(super) fn down(&self, step: impl std::fmt::Display) -> Self {
        Self { path: self.path.clone(), at: format!("{}/{step}", self.at) }
    }

    /// What is there is not what it should be.
    pub(super) fn wrong(&self, expected: &'static str) -> Error {
        Error::new(ErrorKind::Corrupt, "labelled conversations are not of the form")
            .with("path", self.path.display())
            .with("at", if self.at.is_empty() { "/" } else { &self.at })
            .with("expected", expected)
            .hint("see `ctx eval recall --help` for the forms")
    }
}
