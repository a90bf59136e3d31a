//! Compacting a session permanently.

use serde::{Deserialize, Serialize};

use super::{Budget, Turn, Update};

/// Why a compaction runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Trigger {
    /// The provider refused the prompt as too long.
    Overflow,
    /// The user asked for it.
    #[default]
    Manual,
    /// The session passed the threshold.
    Threshold,
}

/// How a summary treats identifiers: paths, ids, hashes, URLs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum IdentifierPolicy {
    /// Kept exactly.
    #[default]
    Preserve,
    /// Replaced by neutral names.
    Anonymize,
    /// No instruction is given.
    Off,
    /// As described by [`Compact::identifier_instructions`].
    Custom,
}

/// Parameters of `compact`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Compact {
    /// The session.
    pub session_id: String,
    /// What changed in the session.
    pub update: Update,
    /// The token budget.
    pub budget: Budget,
    /// The time of the call.
    pub turn: Turn,
    /// The number of tokens that the rows may take afterwards; the engine's own target if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_budget: Option<u64>,
    /// Whether to compact even if the session is small.
    pub force: bool,
    /// The reason.
    pub trigger: Trigger,
    /// The number of this attempt, from 1. Later attempts must cut more.
    pub attempt: u32,
    /// The maximum number of attempts.
    pub max_attempts: u32,
    /// What the user wants the summary to focus on. Untrusted text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_instructions: Option<String>,
    /// How to treat identifiers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identifier_policy: Option<IdentifierPolicy>,
    /// The instructions of [`IdentifierPolicy::Custom`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identifier_instructions: Option<String>,
}

/// The answer to [`Compact`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CompactResult {
    /// Whether the call succeeded, also if nothing had to be done.
    pub ok: bool,
    /// Whether anything was compacted.
    pub compacted: bool,
    /// Why nothing was compacted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The compaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Compacted>,
}

impl CompactResult {
    /// Nothing was done; the host may compact with its own method.
    pub fn declined(reason: impl Into<String>) -> Self {
        Self { reason: Some(reason.into()), ..Self::default() }
    }

    /// Nothing had to be done.
    pub fn nothing(reason: impl Into<String>) -> Self {
        Self { ok: true, reason: Some(reason.into()), ..Self::default() }
    }
}

impl From<Compacted> for CompactResult {
    fn from(result: Compacted) -> Self {
        Self { ok: true, compacted: true, reason: None, result: Some(result) }
    }
}

/// A compaction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Compacted {
    /// The summary that replaces the rows before the first kept row.
    pub summary: String,
    /// The first row that is kept unchanged. It may not lie between a tool call and its results.
    pub first_kept_entry_id: String,
    /// The tokens of the rows before. The host counts for itself.
    pub tokens_before: u64,
    /// The tokens of the rows after.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_after: Option<u64>,
    /// Details from the engine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<serde_json::Value>,
}
