//! The in-memory row of each segment.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use ctx_core::{Role, Timestamp};
use foldhash::fast::RandomState;
use serde::Deserialize;
use serde::de::IgnoredAny;
use uuid::Uuid;

use ctx_search::SegmentId;
use ctx_search::search::{Speaker, subject_of};

/// Where a segment is in the file, and the metadata that is needed without its text.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowEntry {
    pub(super) id: SegmentId,
    pub(super) offset: u64,
    pub(super) timestamp: Timestamp,
    /// When it was archived; its age counts from here.
    pub(super) since: Timestamp,
    /// Length of its line in bytes, without the line break.
    pub(super) length: u32,
    pub(super) session: u32,
    pub(super) role: u16,
    /// The number of its speaker, or [`NAMELESS`].
    pub(super) name: u16,
    /// For a result: the key of what its call was about.
    subject: Option<u32>,
    /// False once it was evicted; its line is still in the file.
    pub(super) live: bool,
}

/// A segment without its text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArchiveRow<'a> {
    /// The segment's id.
    pub id: SegmentId,
    /// The session it belongs to.
    pub session: &'a str,
    /// The message's time.
    pub timestamp: Timestamp,
    /// Its speaker.
    pub speaker: Speaker<'a>,
    /// The offset and the length of its line, without the line break, if it is in a file.
    pub place: Option<(u64, u32)>,
}

/// The length of a kept row in bytes.
pub(super) const ROW: usize = 57;

/// Returns the function that gives the id of a row to an [`IdTable`](ctx_search::IdTable).
pub(super) fn id_in(rows: &[RowEntry]) -> impl Fn(u32) -> SegmentId {
    |place| rows[place as usize].id
}

impl RowEntry {
    /// Returns the row as kept: its fields in order, little endian.
    pub(super) fn written(&self) -> [u8; ROW] {
        let mut out = [0; ROW];
        let mut left = &mut out[..];
        let mut put = |bytes: &[u8]| {
            if let Some((field, rest)) = std::mem::take(&mut left).split_at_mut_checked(bytes.len())
            {
                field.copy_from_slice(bytes);
                left = rest;
            }
        };
        put(self.id.0.as_bytes());
        put(&self.offset.to_le_bytes());
        put(&self.timestamp.0.to_le_bytes());
        put(&self.since.0.to_le_bytes());
        put(&self.length.to_le_bytes());
        put(&self.session.to_le_bytes());
        put(&self.role.to_le_bytes());
        put(&self.name.to_le_bytes());
        put(&[u8::from(self.subject.is_some())]);
        put(&self.subject.unwrap_or_default().to_le_bytes());
        out
    }

    /// Reads a kept row.
    pub(super) fn read(bytes: &[u8; ROW]) -> Self {
        let mut left = &bytes[..];
        fn take<const N: usize>(left: &mut &[u8]) -> [u8; N] {
            let Some((field, rest)) = left.split_first_chunk() else { return [0; N] };
            *left = rest;
            *field
        }
        let left = &mut left;
        Self {
            id: SegmentId(Uuid::from_bytes(take(left))),
            offset: u64::from_le_bytes(take(left)),
            timestamp: Timestamp(i64::from_le_bytes(take(left))),
            since: Timestamp(i64::from_le_bytes(take(left))),
            length: u32::from_le_bytes(take(left)),
            session: u32::from_le_bytes(take(left)),
            role: u16::from_le_bytes(take(left)),
            name: u16::from_le_bytes(take(left)),
            subject: {
                let [has] = take(left);
                let subject = u32::from_le_bytes(take(left));
                (has != 0).then_some(subject)
            },
            live: true,
        }
    }
}

/// Names that many rows share.
#[derive(Debug, Default)]
pub(super) struct Names {
    sessions: Vec<Arc<str>>,
    ordinals: HashMap<Arc<str>, u32, RandomState>,
    roles: Vec<Role>,
    speakers: Vec<Arc<str>>,
}

/// A speaker without a name, or beyond the limit of names.
const NAMELESS: u16 = u16::MAX;

/// The fields of a line that are read when the archive is opened. The text is skipped.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RowHeader<'a> {
    pub(super) id: SegmentId,
    #[serde(borrow)]
    session_id: Cow<'a, str>,
    timestamp: Timestamp,
    archived_at: Option<Timestamp>,
    role: Role,
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    metadata: CallOf<'a>,
    // Required fields of a segment: a line without them could not be read later.
    #[expect(dead_code, reason = "it must be there")]
    tokens: u32,
    #[expect(dead_code, reason = "it must be there")]
    agent_id: IgnoredAny,
    #[expect(dead_code, reason = "it must be there")]
    content: IgnoredAny,
}

/// What a result's call named.
#[derive(Default, Deserialize)]
struct CallOf<'a> {
    #[serde(borrow, default)]
    call: Option<Cow<'a, str>>,
}

impl Names {
    /// Returns the row of a line, or `None` if the line is too long or its role exceeds the limit
    /// of roles.
    pub(super) fn row(
        &mut self,
        head: &RowHeader<'_>,
        offset: u64,
        length: usize,
    ) -> Option<RowEntry> {
        Some(RowEntry {
            id: head.id,
            offset,
            timestamp: head.timestamp,
            since: head.archived_at.unwrap_or(head.timestamp),
            length: u32::try_from(length).ok()?,
            session: self.session(&head.session_id)?,
            role: self.role(&head.role)?,
            name: head.name.as_deref().map_or(NAMELESS, |name| self.speaker(name)),
            subject: head.metadata.call.as_deref().map(subject_of),
            live: true,
        })
    }

    /// Returns the names of sessions, roles and speakers, by number.
    pub(super) fn lists(&self) -> [Vec<String>; 3] {
        let owned = |names: &[Arc<str>]| names.iter().map(|name| name.to_string()).collect();
        let roles = self.roles.iter().map(|role| role.name().to_owned()).collect();
        [owned(&self.sessions), roles, owned(&self.speakers)]
    }

    /// Returns the names in these lists.
    pub(super) fn of([sessions, roles, speakers]: [Vec<String>; 3]) -> Self {
        let shared = |names: Vec<String>| names.into_iter().map(Arc::from).collect();
        let sessions: Vec<Arc<str>> = shared(sessions);
        Self {
            ordinals: sessions.iter().cloned().zip(0..).collect(),
            sessions,
            roles: roles.iter().map(|role| Role::from_name(role)).collect(),
            speakers: shared(speakers),
        }
    }

    pub(super) fn show<'a>(&'a self, row: &RowEntry) -> Option<ArchiveRow<'a>> {
        let role = self.roles.get(usize::from(row.role))?;
        let name = self.speakers.get(usize::from(row.name)).map(|name| &**name);
        Some(ArchiveRow {
            id: row.id,
            session: self.sessions.get(row.session as usize)?,
            timestamp: row.timestamp,
            speaker: Speaker::new(role, name, row.subject),
            place: Some((row.offset, row.length)),
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
        // A linear search, as for roles: an agent has few speakers; the names of hundreds say
        // little.
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
        // There is only a handful of roles.
        if let Some(ordinal) = self.roles.iter().position(|known| known == role) {
            return u16::try_from(ordinal).ok();
        }
        // ctx never writes thousands of roles, and searching among them would be slow.
        if self.roles.len() >= 256 {
            return None;
        }
        self.roles.push(role.clone());
        u16::try_from(self.roles.len() - 1).ok()
    }
}
