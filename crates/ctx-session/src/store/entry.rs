//! A session's entry in the store.

use ctx_core::Timestamp;
use serde::{Deserialize, Serialize};

use crate::key::{AgentScope, ChatKind, SessionKey};

/// One session in `sessions.json`. Field names there are the camelCase of these. Fields unknown to
/// this version are kept and written back.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionEntry {
    /// The current transcript; its file name is derived from this unless `session_file` is set.
    pub session_id: String,
    /// When the session was last active.
    #[serde(default)]
    pub updated_at: Timestamp,
    /// When the current transcript began. Absent in entries of older programs.
    pub session_started_at: Option<Timestamp>,
    /// The transcript's path, if it is not the default one.
    pub session_file: Option<String>,
    /// The kind of chat.
    pub chat_type: Option<ChatType>,
    /// The channel's provider, for example `discord`.
    pub provider: Option<String>,
    /// A group's subject.
    pub subject: Option<String>,
    /// A room's name.
    pub room: Option<String>,
    /// The space (server, team) a room is in.
    pub space: Option<String>,
    /// The display name.
    pub display_name: Option<String>,
    /// The reasoning effort of the model.
    pub thinking_level: Option<String>,
    /// How verbose the agent is about its actions.
    pub verbose_level: Option<String>,
    /// How much of the reasoning is shown.
    pub reasoning_level: Option<String>,
    /// What the agent may do without asking.
    pub elevated_level: Option<String>,
    /// Whether answers are sent; overrides the default for this session.
    pub send_policy: Option<String>,
    /// The model provider, overriding the default.
    pub provider_override: Option<String>,
    /// The model, overriding the default.
    pub model_override: Option<String>,
    /// The credentials, overriding the default.
    pub auth_profile_override: Option<String>,
    /// Prompt tokens, as providers reported them.
    pub input_tokens: Option<u64>,
    /// Answer tokens, as providers reported them.
    pub output_tokens: Option<u64>,
    /// All tokens, as providers reported them.
    pub total_tokens: Option<u64>,
    /// The context window of the session.
    pub context_tokens: Option<u64>,
    /// The number of completed compactions under this key.
    pub compaction_count: Option<u64>,
    /// When memory was last flushed before a compaction.
    pub memory_flush_at: Option<Timestamp>,
    /// The compaction count when memory was last flushed.
    pub memory_flush_compaction_count: Option<u64>,
    /// The key of the parent session, for a subagent.
    pub spawned_by: Option<String>,
    /// The number of subagents from a session of a user down to this one, including this one.
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
