//! What a summary must keep.

use ctx_core::EntryId;
use serde::{Deserialize, Serialize};

/// What kind of thing a fact is. In order of importance: repair adds the first kinds first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FactKind {
    /// An instruction that was pinned, or one that holds for the whole session.
    Pinned,
    /// The newest thing the user asked for that has not been answered.
    Ask,
    /// What the user wants or forbids: "always use pnpm", "do not touch main.rs", "不要重启".
    Constraint,
    /// What was decided, with its reason where one was given.
    Decision,
    /// A question that is open.
    Question,
    /// Why something failed, in the line of the output that tells it.
    Failure,
    /// What somebody said of themselves: a name, a place, a job, what they like.
    Personal,
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
    /// A name in code that somebody quoted: `retry_after`.
    CodeName,
}

impl FactKind {
    /// All kinds, most important first.
    pub const ALL: [Self; 13] = [
        Self::Pinned,
        Self::Ask,
        Self::Constraint,
        Self::Decision,
        Self::Question,
        Self::Failure,
        Self::Personal,
        Self::ErrorCode,
        Self::Path,
        Self::Url,
        Self::Id,
        Self::Number,
        Self::CodeName,
    ];

    /// Whether the fact is a passage in somebody's words, not a token that stands or does not.
    #[must_use]
    pub fn is_passage(self) -> bool {
        matches!(
            self,
            Self::Pinned
                | Self::Ask
                | Self::Constraint
                | Self::Decision
                | Self::Question
                | Self::Failure
                | Self::Personal
        )
    }
}

/// Something that stands in the history and must not be lost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Fact {
    /// What it is.
    pub kind: FactKind,
    /// Its words, exactly as they stand in the source (white space aside).
    pub text: String,
    /// The entry where it was said last.
    pub entry: EntryId,
    /// How much it matters among its kind, 0 to 1: who said it, how often, how late.
    pub weight: f32,
}
