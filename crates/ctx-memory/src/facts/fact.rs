//! The type of a fact.

use std::fmt;

use ctx_core::{Chars, Timestamp};
use ctx_text::collapsed;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// The longest [`Fact::content`], in UTF-16 units. Typical is 20 to 80.
pub const CONTENT_MAX: Chars = Chars(240);

/// The longest [`Fact::context`], in UTF-16 units.
const CONTEXT_MAX: Chars = Chars(400);

/// The maximum number of source entries of a fact. All sources are recorded, so that erasing a
/// source erases the fact.
pub(crate) const SOURCES_MAX: usize = 64;

/// What a fact is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FactKind {
    /// A choice: "Use PostgreSQL instead of MySQL".
    Decision,
    /// What was built, and where: "Webhook endpoint is /api/stripe/webhook".
    Implementation,
    /// A setting: "The server listens on port 3000".
    Config,
    /// A problem: "SSL certificate error in staging".
    Issue,
    /// The state of a task: "Refund logic not yet implemented".
    TaskState,
    /// How the system is structured: "Event-driven with Redis pub/sub".
    Architecture,
    /// What the user requires or forbids: "Never touch the migrations".
    Constraint,
    /// What the user says about themselves: "My name is Ada".
    Personal,
}

impl FactKind {
    /// All kinds, with their names in files and in the recalled block.
    const NAMES: [(Self, &'static str); 8] = [
        (Self::Decision, "decision"),
        (Self::Implementation, "implementation"),
        (Self::Config, "config"),
        (Self::Issue, "issue"),
        (Self::TaskState, "task_state"),
        (Self::Architecture, "architecture"),
        (Self::Constraint, "constraint"),
        (Self::Personal, "personal"),
    ];

    /// The name in files and in the recalled block.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES.into_iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }

    /// Parses a kind's name, in any case and with any separator: `taskState`, `Task State`.
    #[must_use]
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        let bare = |text: &str| text.to_lowercase().replace(['_', '-', ' '], "");
        let wanted = bare(name);
        Self::NAMES.into_iter().find(|(_, name)| bare(name) == wanted).map(|(kind, _)| kind)
    }
}

/// The id of a fact. It stays the same when the fact is repeated in more detail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FactId(pub Uuid);

impl FactId {
    /// Returns the id of a newly learned fact: the beginning of the SHA-256 of its fields, so that
    /// two processes that learn the same fact give it the same id.
    #[must_use]
    pub(crate) fn of(session: &str, kind: FactKind, content: &str, valid_from: Timestamp) -> Self {
        let mut hash = Sha256::new();
        for part in [session, kind.name(), content] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        hash.update(valid_from.0.to_le_bytes());
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&hash.finalize()[..16]);
        Self(uuid::Builder::from_custom_bytes(bytes).into_uuid())
    }
}

impl fmt::Display for FactId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// A fact, as a line of `knowledge.jsonl`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Fact {
    /// Its id.
    pub id: FactId,
    /// What it is about.
    #[serde(rename = "type")]
    pub kind: FactKind,
    /// The fact in a few words, at most [`CONTENT_MAX`].
    pub content: String,
    /// The surrounding text, at most 400 characters. May be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub context: String,
    /// When it was last stated.
    pub timestamp: Timestamp,
    /// When it became valid.
    pub valid_from: Timestamp,
    /// When it ceased to be valid; `None` while it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid_to: Option<Timestamp>,
    /// The fact that superseded it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<FactId>,
    /// The entries it was extracted from.
    #[serde(default)]
    pub source_entry_ids: Vec<String>,
    /// The session it was stated in.
    pub session_id: String,
}

impl Fact {
    /// Whether it has not been superseded.
    pub fn is_current(&self) -> bool {
        self.superseded_by.is_none() && self.valid_to.is_none()
    }

    /// Whether it was valid at a time.
    pub(crate) fn held_at(&self, at: Timestamp) -> bool {
        self.valid_from <= at && self.valid_to.is_none_or(|end| at < end)
    }
}

/// A fact proposed by an extractor, a person or a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FactCandidate {
    /// What it is about.
    pub kind: FactKind,
    /// The fact in a few words.
    pub content: String,
    /// The surrounding text.
    pub context: String,
    /// When it was stated.
    pub timestamp: Timestamp,
    /// The entries it was extracted from.
    pub source_entry_ids: Vec<String>,
    /// The session it was stated in.
    pub session_id: String,
}

impl FactCandidate {
    /// Applies the limits: collapses white space, removes control characters, and truncates texts
    /// and sources. Returns `None` if no content is left.
    #[must_use]
    pub(crate) fn bounded(mut self) -> Option<Self> {
        self.content = one_line(&self.content, CONTENT_MAX);
        self.context = one_line(&self.context, CONTEXT_MAX);
        self.source_entry_ids.truncate(SOURCES_MAX);
        self.content.chars().any(char::is_alphanumeric).then_some(self)
    }

    /// Converts the candidate to a new fact.
    #[must_use]
    pub fn into_fact(self) -> Fact {
        Fact {
            id: FactId::of(&self.session_id, self.kind, &self.content, self.timestamp),
            kind: self.kind,
            content: self.content,
            context: self.context,
            timestamp: self.timestamp,
            valid_from: self.timestamp,
            valid_to: None,
            superseded_by: None,
            source_entry_ids: self.source_entry_ids,
            session_id: self.session_id,
        }
    }
}

/// Returns a text on one line, truncated at the end of a word.
pub(crate) fn one_line(text: &str, max: Chars) -> String {
    // Reads no more than this, which is enough even with much white space.
    let near = ctx_core::text::head(text, Chars(max.0.saturating_mul(4)));
    let clean: String = near.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let line = collapsed(&clean);
    let cut = ctx_core::text::head(&line, Chars(max.0.saturating_sub(1)));
    if Chars::of(&line) <= max {
        return line;
    }
    let word = cut.rfind(' ').filter(|at| at * 3 > cut.len() * 2);
    format!("{}…", cut.get(..word.unwrap_or(cut.len())).unwrap_or(cut))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_reads_back_as_it_was_written() {
        let candidate = FactCandidate {
            kind: FactKind::TaskState,
            content: "Refund logic\n not yet  implemented".into(),
            context: String::new(),
            timestamp: Timestamp(7),
            source_entry_ids: vec!["e1".into()],
            session_id: "s".into(),
        };
        let fact = candidate.bounded().unwrap().into_fact();
        let line = serde_json::to_string(&fact).unwrap();
        assert!(
            line.contains(r#""type":"task_state","content":"Refund logic not yet implemented""#)
        );
        assert!(line.contains(r#""validFrom":7"#) && line.contains(r#""sourceEntryIds":["e1"]"#));
        assert!(!line.contains("validTo") && !line.contains("supersededBy"));
        assert_eq!(serde_json::from_str::<Fact>(&line).unwrap(), fact);
    }

    #[test]
    fn long_texts_are_cut_at_a_word_and_empty_ones_are_refused() {
        let long = one_line(&"word ".repeat(10_000), CONTENT_MAX);
        assert!(Chars::of(&long) <= CONTENT_MAX && long.ends_with("word…"), "{long}");
        let wide = one_line(&"数据库".repeat(10_000), CONTENT_MAX);
        assert!(Chars::of(&wide) <= CONTENT_MAX && wide.ends_with('…'));
        assert_eq!(one_line("a\u{0}b\n", CONTENT_MAX), "a b");
        let empty = FactCandidate {
            kind: FactKind::Issue,
            content: " \n--".into(),
            context: "x".into(),
            timestamp: Timestamp(0),
            source_entry_ids: Vec::new(),
            session_id: String::new(),
        };
        assert!(empty.bounded().is_none());
    }

    #[test]
    fn kinds_are_known_by_any_spelling_of_their_name() {
        for name in ["task_state", "taskState", "Task State", "TASK-STATE"] {
            assert_eq!(FactKind::from_name(name), Some(FactKind::TaskState), "{name}");
        }
        assert_eq!(FactKind::from_name("preference"), None);
    }
}
