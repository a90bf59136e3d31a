//! A session's entry in the store.

use ctx_core::Timestamp;
use serde::{Deserialize, Serialize};

use crate::key::{AgentScope, ChatKind, SessionKey};

/// One session in `sessions.json`. Field names there are the camelCase of these. Fields unknown to
/// this version are kept and written back.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionEntry {
    /// The current transcript; its file name is derived from this unless `session_file` is set.
    pub session_id: String,
    /// When the session was last active.
    #[serde(default)]
    pub updated_at: Timestamp,
    /// When the current transcript began. Absent in entries of older programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_started_at: Option<Timestamp>,
    /// The transcript's path, if it is not the default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_file: Option<String>,
    /// The kind of chat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chat_type: Option<ChatType>,
    /// The channel's provider, for example `discord`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// A group's subject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// A room's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room: Option<String>,
    /// The space (server, team) a room is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub space: Option<String>,
    /// The display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// The reasoning effort of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_level: Option<String>,
    /// How verbose the agent is about its actions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verbose_level: Option<String>,
    /// How much of the reasoning is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_level: Option<String>,
    /// What the agent may do without asking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elevated_level: Option<String>,
    /// Whether answers are sent; overrides the default for this session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_policy: Option<String>,
    /// The model provider, overriding the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_override: Option<String>,
    /// The model, overriding the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_override: Option<String>,
    /// The credentials, overriding the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth_profile_override: Option<String>,
    /// Prompt tokens, as providers reported them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Answer tokens, as providers reported them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// All tokens, as providers reported them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_tokens: Option<u64>,
    /// The context window of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
    /// The number of completed compactions under this key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compaction_count: Option<u64>,
    /// When memory was last flushed before a compaction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_flush_at: Option<Timestamp>,
    /// The compaction count when memory was last flushed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_flush_compaction_count: Option<u64>,
    /// The key of the parent session, for a subagent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spawned_by: Option<String>,
    /// The number of subagents from a session of a user down to this one, including this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spawn_depth: Option<u32>,
    /// Fields unknown to this version.
    #[serde(flatten)]
    pub other: serde_json::Map<String, serde_json::Value>,
}

/// The kind of chat.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ChatType {
    /// A chat of two parties.
    Direct,
    /// A group.
    Group,
    /// A room or channel.
    Room,
    /// A kind unknown to this version. It is kept.
    #[serde(untagged)]
    Other(String),
}

impl ChatType {
    /// Returns the kind of chat and the channel of a key, if the key contains them.
    #[must_use]
    pub fn of(key: &SessionKey) -> Option<(Self, Option<String>)> {
        let SessionKey::Agent { scope, .. } = key else { return None };
        let (chat_type, channel) = match scope {
            AgentScope::Main(_) | AgentScope::Direct { .. } => (Self::Direct, None),
            AgentScope::ChannelDirect { channel, .. } => (Self::Direct, Some(channel)),
            AgentScope::Place { channel, kind: ChatKind::Group, .. } => {
                (Self::Group, Some(channel))
            }
            AgentScope::Place { channel, .. } => (Self::Room, Some(channel)),
            _ => return None,
        };
        Some((chat_type, channel.map(ToString::to_string)))
    }
}

impl SessionEntry {
    /// Creates an entry for a session that begins now, with transcript `session_id`.
    pub fn new(session_id: impl Into<String>, now: Timestamp) -> Self {
        Self { session_id: session_id.into(), updated_at: now, ..Self::default() }
    }
}
