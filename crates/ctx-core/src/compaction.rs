//! Compactions: why, how, and with which result.

use serde::{Deserialize, Serialize};

use crate::{EntryId, Projection, Tokens};

/// The reason for a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CompactionTrigger {
    /// The provider refused the prompt as too long.
    Overflow,
    /// The user requested it.
    Manual,
    /// The session exceeded the threshold.
    Threshold,
}

/// How a summary treats identifiers: paths, ids, hashes, URLs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum IdentifierPolicy {
    /// They are preserved exactly, so that the summary can be traced back.
    #[default]
    #[serde(alias = "strict")]
    Preserve,
    /// They are replaced by neutral names: shorter, but not traceable.
    Anonymize,
    /// The model gets no instruction.
    Off,
    /// The custom instructions apply.
    Custom,
}

/// The caller's instructions for the summary.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SummaryInstructions {
    /// How identifiers are treated.
    pub identifier_policy: Option<IdentifierPolicy>,
    /// The instructions for [`IdentifierPolicy::Custom`].
    pub identifier_instructions: Option<String>,
}

/// The outcome of a compaction that ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Compacted {
    /// The summary that replaces the history; empty if history was dropped without one.
    pub summary: String,
    /// The first entry that is kept as recorded.
    pub first_kept_entry_id: EntryId,
    /// Tokens before.
    pub tokens_before: Tokens,
    /// Tokens after.
    pub tokens_after: Option<Tokens>,
    /// Details that the compaction method reports.
    pub details: Option<serde_json::Value>,
    /// Messages before the first kept entry that are kept nonetheless, after the summary: the
    /// newest user message and pinned messages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub staying: Vec<EntryId>,
    /// Shorter forms of kept messages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub projections: Vec<Projection>,
}

/// The outcome of [`ContextEngine::compact`](crate::ContextEngine::compact).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactResult {
    /// Whether the call succeeded; also `true` if there was nothing to do.
    pub ok: bool,
    /// Whether anything was compacted.
    pub compacted: bool,
    /// The reason why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What the compaction did.
    pub result: Option<Compacted>,
}

impl CompactResult {
    /// Creates a successful result without a compaction.
    pub fn nothing(reason: impl Into<String>) -> Self {
        Self { ok: true, compacted: false, reason: Some(reason.into()), result: None }
    }
}
