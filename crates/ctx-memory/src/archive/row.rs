//! What is in memory of each segment.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use ctx_core::{Role, Timestamp};
use foldhash::fast::RandomState;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::SegmentId;

/// Where a segment is, and what is asked of it before anybody reads it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) id: SegmentId,
    pub(super) offset: u64,
    pub(super) timestamp: Timestamp,
    /// When it came here, from when on its age counts.
    pub(super) since: Timestamp,
    /// Bytes of its line, without the line break.
    pub(super) length: u32,
    pub(super) session: u32,
    pub(super) tokens: u32,
    pub(super) role: u16,
    /// Its speaker, by number, or [`NAMELESS`].
    pub(super) name: u16,
    /// False once it was evicted; its line is still there.
    pub(super) live: bool,
}

/// A segment without its text.
#[derive(Clone, Copy, Debug)]
pub struct RowRef<'a> {
    /// Which one.
    pub id: SegmentId,
    /// The session it was said in.
    pub session: &'a str,
    /// A number for the session, the same as long as the archive is open.
    pub session_ordinal: u32,
    /// When it was said.
    pub timestamp: Timestamp,
    /// Who said it.
    pub role: &'a Role,
    /// The speaker's name, where there are names.
    pub name: Option<&'a str>,
    /// Its size in tokens.
    pub tokens: u32,
}

/// Names that many rows share.
#[derive(Debug, Default)]
pub(super) struct Names {
    sessions: Vec<Arc<str>>,
    ordinals: HashMap<Arc<str>, u32, RandomState>,
    roles: Vec<Role>,
    speakers: Vec<Arc<str>>,
}

/// A speaker without a name, or one of too many.
const NAMELESS: u16 = u16::MAX;

/// What is read of a line when the archive is opened. The text is passed over.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Head<'a> {
    pub(super) id: SegmentId,
    #[serde(borrow)]
    session_id: Cow<'a, str>,
    timestamp: Timestamp,
    #[serde(default)]
    archived_at: Option<Timestamp>,
    role: Role,
    tokens: u32,
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    // What a whole segment has as well: without it, it could not be read later.
    #[expect(dead_code, reason = "it must be there")]
    agent_id: IgnoredAny,
    #[expect(dead_code, reason = "it must be there")]
    content: IgnoredAny,
}

impl Names {
    /// The row of a line. None if it is too long, or speaks in one role too many.
    pub(super) fn row(&mut self, head: &Head<'_>, offset: u64, length: usize) -> Option<Row> {
        Some(Row {
            id: head.id,
            offset,
            timestamp: head.timestamp,
            since: head.archived_at.unwrap_or(head.timestamp),
            length: u32::try_from(length).ok()?,
            session: self.session(&head.session_id)?,
            tokens: head.tokens,
            role: self.role(&head.role)?,
            name: head.name.as_deref().map_or(NAMELESS, |name| self.speaker(name)),
            live: true,
        })
    }

    pub(super) fn show<'a>(&'a self, row: &Row) -> Option<RowRef<'a>> {
        Some(RowRef {
            id: row.id,
            session: self.sessions.get(row.session as usize)?,
            session_ordinal: row.session,
            timestamp: row.timestamp,
            role: self.roles.get(usize::from(row.role))?,
            name: self.speakers.get(usize::from(row.name)).map(|name| &**name),
            tokens: row.tokens,
        })
    }

    fn session(&mut self, name: &str) -> Option<u32> {
        if let Some(ordinal) = self.ordinals.get(name) {
            return Some(*ordinal);
        }
        let ordinal = u32::try_from(self.sessions.len()).ok()?;
        let name: Arc<str> = name.into();
        self.sessions.push(name.clone());
        self.ordinals.insert(name, ordinal);
        Some(ordinal)
    }

    fn speaker(&mut self, name: &str) -> u16 {
        let known = self.speakers.iter().position(|known| **known == *name);
        // As with roles: a few people talk to an agent, and with hundreds, names say little.
        let number = known.unwrap_or(self.speakers.len());
        if number >= 256 {
            return NAMELESS;
        }
        if known.is_none() {
            self.speakers.push(name.into());
        }
        u16::try_from(number).unwrap_or(NAMELESS)
    }

    fn role(&mut self, role: &Role) -> Option<u16> {
        // There are a handful.
        if let Some(ordinal) = self.roles.iter().position(|known| known == role) {
            return u16::try_from(ordinal).ok();
        }
        // A file with thousands of roles is none of ours, and a search among them would be slow.
        if self.roles.len() >= 256 {
            return None;
        }
        self.roles.push(role.clone());
        u16::try_from(self.roles.len() - 1).ok()
    }
}
