//! Facts that a summary must keep.

use ctx_core::EntryId;
use ctx_text::{SpanKind, WordList};
use serde::{Deserialize, Serialize};

/// The kind of a fact, in order of importance: repair adds the first kinds first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FactKind {
    /// A pinned instruction, or one that holds for the whole session.
    Pinned,
    /// The open request: the user's last request, if it is not answered.
    Ask,
    /// What the user requires or forbids: "always use pnpm", "do not touch main.rs", "不要重启".
    Constraint,
    /// A decision, with its reason if given.
    Decision,
    /// An open question.
    Question,
    /// The cause of a failure: the line of output that states it.
    Failure,
    /// What a speaker says about themselves: a name, a place, a job, preferences.
    Personal,
    /// What else the user states: "the deadline is Friday".
    Statement,
    /// An earlier request of the user.
    Request,
    /// An error at its root cause: a code, a type, an exit status.
    ErrorCode,
    /// A file or folder.
    Path,
    /// A URL.
    Url,
    /// A hash, a UUID, an issue, a version, an address.
    Id,
    /// A number with its unit.
    Number,
    /// A quoted name in code: `retry_after`.
    CodeName,
}

impl FactKind {
    /// All kinds, most important first.
    pub const ALL: [Self; 15] = [
        Self::Pinned,
        Self::Ask,
        Self::Constraint,
        Self::Decision,
        Self::Question,
        Self::Failure,
        Self::Personal,
        Self::Statement,
        Self::Request,
        Self::ErrorCode,
        Self::Path,
        Self::Url,
        Self::Id,
        Self::Number,
        Self::CodeName,
    ];

    /// Whether the fact is a passage of prose, not a token.
    #[must_use]
    pub fn is_passage(self) -> bool {
        self.span().is_none()
    }

    /// Returns the kind of span that states the fact; `None` for a passage.
    #[must_use]
    pub fn span(self) -> Option<SpanKind> {
        Some(match self {
            Self::ErrorCode => SpanKind::ErrorCode,
            Self::Path => SpanKind::Path,
            Self::Url => SpanKind::Url,
            Self::Id => SpanKind::Id,
            Self::Number => SpanKind::Number,
            Self::CodeName => SpanKind::CodeName,
            _ => return None,
        })
    }
}

impl From<SpanKind> for FactKind {
    fn from(kind: SpanKind) -> Self {
        let own = Self::ALL.into_iter().find(|fact| fact.span() == Some(kind));
        own.unwrap_or(Self::CodeName)
    }
}

/// Prefixes of temporary files, of interpreters in scripts, and of ids that nothing refers to.
static SCRATCH: WordList = WordList::new("spans.scratch");

/// A fact in the history that must be preserved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequiredFact {
    /// Its kind.
    pub kind: FactKind,
    /// Its words, exactly as in the source (except for white space).
    pub text: String,
    /// The entry that mentions it last.
    pub entry: EntryId,
    /// Its weight among facts of its kind, 0 to 1, by speaker, frequency and recency.
    pub weight: f32,
    /// Whether the user stated it.
    #[serde(default)]
    pub by_user: bool,
    /// Its position among the passages of the session.
    #[serde(skip)]
    pub order: u32,
}

impl RequiredFact {
    /// Returns the weight of the fact in the coverage of a summary, 0 to 1: statements of the user
    /// count most, names mentioned by the agent count little, temporary files do not count.
    pub fn importance(&self) -> f64 {
        match (self.kind.is_passage(), self.by_user) {
            (true, true) => 1.0,
            (true, false) => 0.3,
            (false, _) if SCRATCH.begins(&self.text) => 0.0,
            (false, true) => 0.2,
            (false, false) => 0.05,
        }
    }
}
