//! The records in memory.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::{CompactionRecord, Limits, Record, SessionInfo, SessionTrace};

/// What stays in memory of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keep {
    /// All of it.
    Entries,
    /// What can be drawn as a chart; the entries are on disk.
    Sizes,
}

/// Where a record stands in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) offset: u64,
    pub(super) length: u32,
}

#[derive(Debug)]
struct Row {
    record: Arc<Record>,
    place: Option<Place>,
}

#[derive(Debug, Default)]
struct Session {
    info: Arc<SessionInfo>,
    rows: VecDeque<Row>,
    /// Counts up with every use of any session.
    used: u64,
}

/// All conversations.
#[derive(Debug)]
pub(super) struct Shelf {
    limits: Limits,
    keep: Keep,
    sessions: HashMap<String, Session>,
    records: usize,
    clock: u64,
}

impl Shelf {
    pub(super) fn new(limits: Limits, keep: Keep) -> Self {
        Self { limits, keep, sessions: HashMap::new(), records: 0, clock: 0 }
    }

    /// Begins a conversation; gives those that had to go for it.
    pub(super) fn begin(&mut self, info: Arc<SessionInfo>) -> Vec<String> {
        let id = info.id.clone();
        self.used(&id).info = info;
        self.bound(&id)
    }

    /// Adds a record; gives what stays of it in memory, and the conversations that had to go.
    pub(super) fn add(&mut self, record: &Record) -> (Arc<Record>, Vec<String>) {
        let sizes = match self.keep {
            Keep::Entries => record.clone(),
            Keep::Sizes => without_entries(record),
        };
        let sizes = Arc::new(sizes);
        let id = record.session.clone();
        let row = Row { record: sizes.clone(), place: None };
        self.used(&id).rows.push_back(row);
        self.records += 1;
        (sizes, self.bound(&id))
    }

    /// Takes in what a file holds, before what came meanwhile.
    pub(super) fn restore(&mut self, info: SessionInfo, rows: Vec<(Record, Place)>) {
        let session = self.sessions.entry(info.id.clone()).or_default();
        if session.info.id.is_empty() {
            session.info = Arc::new(info);
        }
        self.records += rows.len();
        for (record, place) in rows.into_iter().rev() {
            session.rows.push_front(Row { record: Arc::new(record), place: Some(place) });
        }
    }

    /// Notes where a record was written.
    pub(super) fn placed(&mut self, session: &str, number: u64, place: Place) {
        let rows = self.sessions.get_mut(session).map(|session| session.rows.iter_mut().rev());
        let row = rows.and_then(|mut rows| rows.find(|row| row.record.number == number));
        if let Some(row) = row {
            row.place = Some(place);
        }
    }

    /// Notes that a conversation's file is gone.
    pub(super) fn unplaced(&mut self, session: &str) {
        for row in self.sessions.get_mut(session).into_iter().flat_map(|session| &mut session.rows)
        {
            row.place = None;
        }
    }

    pub(super) fn undone(&mut self, session: &str, entry: &str) {
        let Some(session) = self.sessions.get_mut(session) else { return };
        for row in &mut session.rows {
            if row.record.compaction.as_ref().is_some_and(|compaction| compaction.is_of(entry)) {
                Arc::make_mut(&mut row.record).undo(entry);
            }
        }
    }

    pub(super) fn all(&self) -> Vec<SessionTrace> {
        let mut all: Vec<&Session> = self.sessions.values().collect();
        all.sort_by_key(|session| {
            let last = session.rows.back().map(|row| row.record.at);
            std::cmp::Reverse((last, session.used))
        });
        all.into_iter().map(trace).collect()
    }

    pub(super) fn one(&self, id: &str) -> Option<SessionTrace> {
        self.sessions.get(id).map(trace)
    }

    pub(super) fn record(&self, id: &str, number: u64) -> Option<(Arc<Record>, Option<Place>)> {
        let rows = &self.sessions.get(id)?.rows;
        let row = rows.iter().rev().find(|row| row.record.number == number)?;
        Some((row.record.clone(), row.place))
    }

    /// Takes a conversation out.
    pub(super) fn remove(&mut self, id: &str) {
        if let Some(session) = self.sessions.remove(id) {
            self.records -= session.rows.len();
        }
    }

    fn used(&mut self, id: &str) -> &mut Session {
        self.clock += 1;
        let session = self.sessions.entry(id.to_owned()).or_default();
        session.used = self.clock;
        if session.info.id.is_empty() {
            let info = SessionInfo { id: id.to_owned(), ..SessionInfo::default() };
            session.info = Arc::new(info);
        }
        session
    }

    /// Lets conversations go until there are few enough records: those used longest ago, and of the
    /// one in use its oldest records. So many at once that the next time is far.
    fn bound(&mut self, in_use: &str) -> Vec<String> {
        let (records, sessions) = (self.limits.records, self.limits.records);
        if self.records <= records && self.sessions.len() <= sessions {
            return Vec::new();
        }
        let mut oldest: Vec<(u64, String)> =
            self.sessions.iter().map(|(id, session)| (session.used, id.clone())).collect();
        oldest.sort_unstable();
        let mut gone = Vec::new();
        for (_, id) in oldest {
            if self.records <= records - records / 10 && self.sessions.len() <= sessions {
                break;
            }
            if id != in_use {
                self.remove(&id);
                gone.push(id);
            }
        }
        if let Some(only) = self.sessions.get_mut(in_use) {
            while self.records > records && only.rows.pop_front().is_some() {
                self.records -= 1;
            }
        }
        gone
    }
}

/// A record as it stays in memory.
pub(super) fn without_entries(record: &Record) -> Record {
    Record {
        session: record.session.clone(),
        protocol: record.protocol.clone(),
        model: record.model.clone(),
        compaction: record.compaction.as_ref().map(CompactionRecord::in_short),
        actions: record.actions.clone(),
        components: record.components.clone(),
        entries: Vec::new(),
        ..*record
    }
}

fn trace(session: &Session) -> SessionTrace {
    let requests = session.rows.iter().map(|row| row.record.clone()).collect();
    SessionTrace { info: session.info.clone(), requests }
}
