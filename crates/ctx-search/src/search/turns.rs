//! Columns of segment metadata, in the order of the archive.

use foldhash::HashMap;

use ctx_core::Timestamp;

use crate::SegmentId;

/// No previous or next turn.
const NONE: u32 = u32::MAX;

/// A row per segment, in dense columns, because ranking walks all of them.
#[derive(Debug, Default)]
pub(super) struct Turns {
    pub(super) ids: Vec<SegmentId>,
    pub(super) times: Vec<Timestamp>,
    pub(super) sessions: Vec<u32>,
    /// The previous and next turn in the same session, or [`NONE`].
    before: Vec<u32>,
    after: Vec<u32>,
    /// The user's message before the turn in its session, or [`NONE`] if the turn is the user's.
    requests: Vec<u32>,
    session_ids: HashMap<Box<str>, u32>,
    pub(super) last_of: Vec<u32>,
    last_request_of: Vec<u32>,
}

impl Turns {
    /// Adds a row. Within a session, segments must be added in the order of the conversation.
    pub(crate) fn add(
        &mut self,
        id: SegmentId,
        session: &str,
        time: Timestamp,
        by_user: bool,
    ) -> u32 {
        let row = self.ids.len() as u32;
        let session = match self.session_ids.get(session) {
            Some(&session) => session,
            None => {
                let name = session;
                let session = self.last_of.len() as u32;
                self.session_ids.insert(name.into(), session);
                self.last_of.push(NONE);
                self.last_request_of.push(NONE);
                session
            }
        };
        let last = std::mem::replace(&mut self.last_of[session as usize], row);
        if let Some(after) = self.after.get_mut(last as usize) {
            *after = row;
        }
        let request = &mut self.last_request_of[session as usize];
        self.requests.push(if by_user { NONE } else { *request });
        if by_user {
            *request = row;
        }
        self.ids.push(id);
        self.times.push(time);
        self.sessions.push(session);
        self.before.push(last);
        self.after.push(NONE);
        row
    }

    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    pub(crate) fn id(&self, row: u32) -> Option<SegmentId> {
        self.ids.get(row as usize).copied()
    }

    /// Returns the previous and next turn in the same session.
    pub(crate) fn neighbours_of(&self, row: u32) -> [Option<u32>; 2] {
        let of = |column: &[u32]| column.get(row as usize).copied().filter(|row| *row != NONE);
        [of(&self.before), of(&self.after)]
    }

    /// Returns the user's message before a turn that is not the user's.
    pub(crate) fn request_of(&self, row: u32) -> Option<u32> {
        self.requests.get(row as usize).copied().filter(|row| *row != NONE)
    }

    /// The rows of a session, the last first.
    pub(crate) fn rows_of(&self, session: &str) -> impl Iterator<Item = u32> {
        let last = self.session(session).and_then(|session| self.last_of.get(session as usize));
        let last = last.copied().filter(|row| *row != NONE);
        std::iter::successors(last, |row| self.neighbours_of(*row)[0])
    }

    /// The names of the sessions.
    pub(crate) fn session_names(&self) -> impl Iterator<Item = &str> {
        self.session_ids.keys().map(|name| &**name)
    }

    /// Returns the number of the session called `id`.
    pub(crate) fn session(&self, id: &str) -> Option<u32> {
        self.session_ids.get(id).copied()
    }
}
