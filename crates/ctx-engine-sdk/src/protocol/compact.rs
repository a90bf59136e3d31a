//! Making a session smaller for good.

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

/// What a summary does with identifiers: paths, ids, hashes, URLs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum IdentifierPolicy {
    /// They stay exactly as they are.
    #[default]
    Preserve,
    /// They are replaced by neutral names.
    Anonymize,
    /// Nothing is asked.
    Off,
    /// [`Compact::identifier_instructions`] say.
    Custom,
}

/// The session is to be compacted.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Compact {
    /// The session.
    pub session_id: String,
    /// What is new in it.
    pub update: Update,
    /// The room there is.
    pub budget: Budget,
    /// When.
    pub turn: Turn,
    /// What the rows may measure afterwards; the engine's own target where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_budget: Option<u64>,
    /// Compact even if the session is small.
    pub force: bool,
    /// Why.
    pub trigger: Trigger,
    /// Which attempt this is, from 1. Later ones must cut deeper.
    pub attempt: u32,
    /// How many attempts there will be at most.
    pub max_attempts: u32,
    /// What the user wants the summary to dwell on. Untrusted text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_instructions: Option<String>,
    /// What to do with identifiers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identifier_policy: Option<IdentifierPolicy>,
    /// The instructions of [`IdentifierPolicy::Custom`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identifier_instructions: Option<String>,
}

/// What became of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CompactResult {
    /// Whether all went well, also when nothing had to be done.
    pub ok: bool,
    /// Whether anything was compacted.
    pub compacted: bool,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What was achieved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Compacted>,
}

impl CompactResult {
    /// Nothing was done, and the host may do it its own way.
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
    /// The summary that stands for the rows before the first kept one.
    pub summary: String,
    /// The first row kept as it is. It may not lie between a tool call and its results.
    pub first_kept_entry_id: String,
    /// What the rows measured before. The host counts for itself.
    pub tokens_before: u64,
    /// What they measure after.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_after: Option<u64>,
    /// What the engine has to say about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<serde_json::Value>,
}
