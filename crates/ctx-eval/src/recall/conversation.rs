//! Labelled conversations: turns, questions, and the turns that answer them.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use ctx_core::{Error, ErrorKind, Result, Role, Timestamp};
use ctx_search::{Metadata, Segment, SegmentId};
use serde::de::{Deserialize, DeserializeOwned, Deserializer};

use super::{beam, locomo};

/// The formats of labelled conversations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatasetFormat {
    /// A JSON file, or a folder of such: a conversation, or a list of them. Each has `conversation`
    /// with `session_N` (a list of turns with `dia_id`, `speaker` and `text`) and
    /// `session_N_date_time`, and `qa` (a list of `question`, `evidence` and `category`).
    Locomo,
    /// A folder with `chat.json` (batches of groups of messages with `id`, `role` and `content`)
    /// and `probing_questions.json` (lists of `question` and `source_chat_ids`, by category), or a
    /// folder of such folders.
    Beam,
    /// Recorded sessions of agents, read by [`session`](super::session). What the agent read or ran
    /// again is the question.
    Sessions,
}

impl DatasetFormat {
    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Locomo => "locomo",
            Self::Beam => "beam",
            Self::Sessions => "sessions",
        }
    }
}

impl FromStr for DatasetFormat {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let all = [Self::Locomo, Self::Beam, Self::Sessions];
        all.into_iter().find(|form| form.name() == name).ok_or_else(|| {
            Error::new(ErrorKind::InvalidInput, "unknown format of labelled conversations")
                .with("name", name)
                .hint("use locomo, beam or sessions")
        })
    }
}

/// A conversation and the questions about it.
#[derive(Clone, Debug, Default)]
pub struct Conversation {
    /// Its name in errors.
    pub name: String,
    /// The turns, in order. The id of a turn is its index.
    pub turns: Vec<Segment>,
    /// Questions with known answering turns.
    pub questions: Vec<Question>,
    /// The number of questions without known answering turns.
    pub skipped: usize,
    /// The number of invalid references whose meaning was clear.
    pub repaired: usize,
    /// The number of references that match no turn.
    pub dropped: usize,
}

/// A question.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// Its text.
    pub text: String,
    /// Its category.
    pub category: String,
    /// Whether it counts in the sum; questions without an answer do not.
    pub counts: bool,
    /// The turns that answer it: indices into [`Conversation::turns`], sorted, each once.
    pub evidence: Vec<usize>,
    /// The place of the question in a recorded session.
    pub recorded: Option<Recorded>,
}

/// A question in a recorded session. Any one turn of its evidence answers it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// The number of turns that had left the window.
    pub archived: usize,
    /// The newest message of the user, which the window always contains.
    pub visible: Option<usize>,
    /// The turns of the evidence that hold the same result as the repeated call.
    pub unchanged: Vec<usize>,
    /// Whether a repeated call asks; otherwise the user.
    pub is_repeated: bool,
}

/// Reads labelled conversations; none for [`DatasetFormat::Sessions`].
///
/// # Errors
///
/// [`ErrorKind::Io`] if nothing can be read, [`ErrorKind::Corrupt`] if the content does not have
/// the format, with the file and the place in it.
pub fn load(form: DatasetFormat, path: &Path) -> Result<Vec<Conversation>> {
    let found = match form {
        DatasetFormat::Locomo => locomo::load(path)?,
        DatasetFormat::Beam => beam::load(path)?,
        DatasetFormat::Sessions => Vec::new(),
    };
    if found.iter().all(|conversation| conversation.questions.is_empty()) {
        return Err(Error::new(ErrorKind::Corrupt, "no question has a known answering turn")
            .with("path", path.display())
            .with("conversations", found.len())
            .hint("the labels name turns by their ids: see `evidence` or `source_chat_ids`"));
    }
    Ok(found)
}

impl Conversation {
    /// Adds a turn, and returns its index.
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
            // Repeated text makes two turns here.
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

    /// Adds a question, if a turn answers it.
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

/// Lists a folder, sorted by name.
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

/// Reads a JSON file.
pub(super) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let text = ctx_disk::read_to_string(path).map_err(|e| {
        Error::new(ErrorKind::Io, "cannot read labelled conversations")
            .with("path", path.display())
            .hint("give the path of a dataset on this machine; none comes with the program")
            .source(e)
    })?;
    parse(path, &mut serde_json::Deserializer::from_str(&text))
}

/// Reads a value of a file. An error names its place.
pub(super) fn parse<'de, T: Deserialize<'de>>(
    path: &Path,
    json: impl Deserializer<'de>,
) -> Result<T> {
    serde_path_to_error::deserialize(json).map_err(|error| {
        Error::new(ErrorKind::Corrupt, "labelled conversations do not have the expected format")
            .with("path", path.display())
            .with("at", error.path())
            .with("reason", error.inner())
            .hint("see `ctx eval recall --help` for the formats")
    })
}
