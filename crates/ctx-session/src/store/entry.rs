//! What the store knows of one session.

use std::fmt;

use ctx_core::Timestamp;
use serde::{Deserialize, Serialize};

use crate::key::{AgentScope, PlaceKind, SessionKey};

/// One session as `sessions.json` holds it. Field names there are the camelCase of these. Fields
/// this version does not know are kept and written back.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionEntry {
    /// The current transcript; its file name follows from it unless `session_file` is set.
    pub session_id: String,
    /// When something last happened.
    #[serde(default)]
    pub updated_at: Timestamp,
    /// When the session began, that is its transcript. Absent in entries of older programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_started_at: Option<Timestamp>,
    /// The transcript's path, where it is not the usual one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_file: Option<String>,
    /// Who takes part.
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
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// How much the model reasons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_level: Option<String>,
    /// How much the agent says about what it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verbose_level: Option<String>,
    /// How much of the reasoning is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_level: Option<String>,
    /// What the agent may do without asking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elevated_level: Option<String>,
    /// Whether answers are sent, for this session alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_policy: Option<String>,
    /// The model provider to use instead of the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_override: Option<String>,
    /// The model to use instead of the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_override: Option<String>,
    /// The credentials to use instead of the default.
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
    /// The window the session runs in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
    /// How many compactions were completed under this key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compaction_count: Option<u64>,
    /// When memory was last flushed before a compaction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_flush_at: Option<Timestamp>,
    /// The compaction count when memory was last flushed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_flush_compaction_count: Option<u64>,
    /// The key of the session that started this one, which is a subagent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spawned_by: Option<String>,
    /// How many subagents stand between this one and a session of a user, itself counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spawn_depth: Option<u32>,
    /// Fields this version does not know.
    #[serde(flatten)]
    pub other: serde_json::Map<String, serde_json::Value>,
}

/// Who takes part in a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ChatType {
    /// Two sides.
    Direct,
    /// A group.
    Group,
    /// A room or channel.
    Room,
    /// A word this version does not know. It is kept.
    #[serde(untagged)]
    Other(String),
}

impl ChatType {
    /// Who takes part in the session of a key, and the channel, where the key says so.
    #[must_use]
    pub fn of(key: &SessionKey) -> Option<(Self, Option<String>)> {
        let SessionKey::Agent { scope, .. } = key else { return None };
        let (chat_type, channel) = match scope {
            AgentScope::Main(_) | AgentScope::Direct { .. } => (Self::Direct, None),
            AgentScope::ChannelDirect { channel, .. } => (Self::Direct, Some(channel)),
            AgentScope::Place { channel, kind: PlaceKind::Group, .. } => {
                (Self::Group, Some(channel))
            }
            AgentScope::Place { channel, .. } => (Self::Room, Some(channel)),
            _ => return None,
        };
        Some((chat_type, channel.map(ToString::to_string)))
    }
}

impl fmt::Display for ChatType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Direct => "direct",
            Self::Group => "group",
            Self::Room => "room",
            Self::Other(word) => word,
        })
    }
}

impl SessionEntry {
    /// A session that begins now, with transcript `session_id`.
    pub fn new(session_id: impl Into<String>, now: Timestamp) -> Self {
        Self { session_id: session_id.into(), updated_at: now, ..Self::default() }
    }
}
