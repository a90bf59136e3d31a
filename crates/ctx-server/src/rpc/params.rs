//! The parameters of each method.

use std::path::PathBuf;

use ctx_config::Profile;
use ctx_core::{CompactionTrigger, SubagentEnd, SummaryInstructions, Tokens};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::dialect::Dialect;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Initialize {
    /// The client; accepted and ignored.
    #[serde(rename = "client")]
    pub(super) _client: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Open<'a> {
    pub(super) session_id: Option<String>,
    pub(super) engine: Option<String>,
    pub(super) profile: Option<Profile>,
    pub(super) provider: Option<String>,
    pub(super) model: Option<String>,
    pub(super) summary_model: Option<String>,
    pub(super) window: Option<Tokens>,
    pub(super) reserve_tokens: Option<Tokens>,
    pub(super) counter: Option<String>,
    pub(super) agent: Option<String>,
    pub(super) format: Dialect,
    /// Text, or text blocks in Anthropic's format.
    #[serde(borrow)]
    pub(super) system_prompt: Option<&'a RawValue>,
    /// Tool schemas in the provider's format.
    #[serde(borrow)]
    pub(super) tools: Option<&'a RawValue>,
    pub(super) session_file: Option<PathBuf>,
    pub(super) config: Option<Value>,
}

/// Parameters of `append` and `sync`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Messages<'a> {
    #[serde(rename = "sessionId")]
    pub(super) _session_id: String,
    #[serde(borrow)]
    pub(super) messages: Vec<&'a RawValue>,
    pub(super) ids: Option<Vec<Option<String>>>,
    #[serde(default)]
    pub(super) is_heartbeat: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Assemble {
    #[serde(rename = "sessionId")]
    pub(super) _session_id: String,
    /// The user message that the host will add itself.
    pub(super) prompt: Option<String>,
    /// The size of that message, as an alternative.
    pub(super) pending_tokens: Option<Tokens>,
    pub(super) now: Option<i64>,
    pub(super) format: Option<Dialect>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Fit<'a> {
    #[serde(rename = "sessionId")]
    pub(super) _session_id: String,
    /// The number of messages at the beginning that are those of the last call.
    #[serde(default)]
    pub(super) keep: usize,
    /// The messages after them.
    #[serde(borrow)]
    pub(super) messages: Vec<&'a RawValue>,
    /// The host's id of each of them.
    pub(super) ids: Option<Vec<Option<String>>>,
    /// The new system prompt, if it changed.
    #[serde(borrow)]
    pub(super) system_prompt: Option<&'a RawValue>,
    /// The new tool schemas, if they changed.
    #[serde(borrow)]
    pub(super) tools: Option<&'a RawValue>,
    pub(super) prompt: Option<String>,
    pub(super) pending_tokens: Option<Tokens>,
    pub(super) now: Option<i64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Expand {
    #[serde(rename = "sessionId")]
    pub(super) _session_id: String,
    pub(super) id: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Recall {
    #[serde(rename = "sessionId")]
    pub(super) _session_id: String,
    pub(super) query: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Compact {
    #[serde(rename = "sessionId")]
    pub(super) _session_id: String,
    #[serde(default)]
    pub(super) force: bool,
    pub(super) token_budget: Option<Tokens>,
    pub(super) custom_instructions: Option<String>,
    #[serde(default)]
    pub(super) summary_instructions: SummaryInstructions,
    pub(super) trigger: Option<CompactionTrigger>,
    pub(super) attempt: Option<u32>,
    pub(super) max_attempts: Option<u32>,
    pub(super) now: Option<i64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Usage {
    #[serde(rename = "sessionId")]
    pub(super) _session_id: String,
    /// The provider's count for the last request: all of its input, cached or not.
    pub(super) prompt_tokens: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct CommitTurn {
    #[serde(rename = "sessionId")]
    pub(super) _session_id: String,
    pub(super) advancement_key: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Spawn {
    pub(super) session_id: String,
    /// The parent session; default: this one.
    pub(super) parent_session_key: Option<String>,
    pub(super) child_session_key: String,
    pub(super) ttl_ms: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct SubagentEnded {
    #[serde(rename = "sessionId")]
    pub(super) _session_id: String,
    pub(super) child_session_key: String,
    pub(super) reason: SubagentEnd,
}

/// Parameters of `after_turn`, `maintain`, `status`, `close`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct SessionParams {
    #[serde(rename = "sessionId")]
    pub(super) _session_id: String,
}
