//! Segments: the messages in the archive.

use std::fmt;
use std::str::FromStr;

use ctx_core::{Role, Timestamp};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// The id of a segment: the beginning of the SHA-256 of session, role and content, as a UUID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SegmentId(pub Uuid);

impl SegmentId {
    /// Returns the id of a message with this session, role and content.
    #[must_use]
    pub fn of(session: &str, role: &Role, content: &str) -> Self {
        let mut hash = Sha256::new();
        // Each part is prefixed by its length, so that parts cannot run into each other.
        for part in [session, role.name(), content] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&hash.finalize()[..16]);
        Self(uuid::Builder::from_custom_bytes(bytes).into_uuid())
    }
}

impl FromStr for SegmentId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, uuid::Error> {
        Uuid::parse_str(text).map(Self)
    }
}

impl fmt::Display for SegmentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// A message in the archive, as a line of `segments.jsonl`. Its text is already redacted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Segment {
    /// Its id.
    pub id: SegmentId,
    /// The agent that owns the memory.
    pub agent_id: String,
    /// The session it belongs to.
    pub session_id: String,
    /// The message's time.
    pub timestamp: Timestamp,
    /// When it was archived, if more than a day after `timestamp`; its age counts from here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archived_at: Option<Timestamp>,
    /// The message's role.
    pub role: Role,
    /// The speaker's name, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The text.
    pub content: String,
    /// Its size in tokens, by the counter of the profile.
    pub tokens: u32,
    /// What is known about it.
    #[serde(default)]
    pub metadata: Metadata,
    /// The transcript entry it comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry_id: Option<String>,
}

/// What is known about a segment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Metadata {
    /// For a tool result: what its call named, such as a path or a command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_made_of_session_role_and_content() {
        let id = SegmentId::of("s", &Role::User, "hello");
        assert_eq!(id, SegmentId::of("s", &Role::User, "hello"));
        assert_ne!(id, SegmentId::of("t", &Role::User, "hello"));
        assert_ne!(id, SegmentId::of("s", &Role::Assistant, "hello"));
        assert_ne!(id, SegmentId::of("su", &Role::Other("ser".into()), "hello"));
        assert_eq!(id.0.get_version_num(), 8);
    }

    #[test]
    fn a_line_reads_back_as_it_was_written() {
        let segment = Segment {
            id: SegmentId::of("s", &Role::User, "héllo"),
            agent_id: "main".into(),
            session_id: "s".into(),
            timestamp: Timestamp(1),
            archived_at: Some(Timestamp(2)),
            role: Role::User,
            name: None,
            content: "héllo".into(),
            tokens: 2,
            metadata: Metadata::default(),
            entry_id: Some("e1".into()),
        };
        let line = serde_json::to_string(&segment).unwrap();
        assert!(
            line.contains(r#""sessionId":"s""#) && line.contains(r#""entryId":"e1""#),
            "{line}"
        );
        assert_eq!(serde_json::from_str::<Segment>(&line).unwrap(), segment);
    }
}
