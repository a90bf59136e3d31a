//! Records in memory: the data of charts. Their entries are on disk.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{CompactionRecord, Record, SessionInfo, SessionTrace, TraceLimits};

/// The position of a record in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RecordPosition {
    pub(super) offset: u64,
    pub(super) length: u32,
}

#[derive(Debug)]
struct CachedRecord {
    record: Arc<Record>,
    position: Option<RecordPosition>,
}

#[derive(Debug, Default)]
struct CachedSession {
    info: Arc<SessionInfo>,
    rows: VecDeque<CachedRecord>,
    /// The time of the last use, on a clock that counts uses.
    used: u64,
}

/// All conversations.
#[derive(Debug)]
pub(super) struct RecordCache {
    limits: TraceLimits,
    sessions: HashMap<String, CachedSession>,
    records: usize,
    clock: u64,
}

impl RecordCache {
    pub(super) fn new(limits: TraceLimits) -> Self {
        Self { limits, sessions: HashMap::new(), records: 0, clock: 0 }
    }

    /// Adds a conversation. Returns the evicted ones.
    pub(super) fn begin(&mut self, info: Arc<SessionInfo>) -> Vec<String> {
        let id = info.id.clone();
        self.used(&id).info = info;
        self.bound(&id)
    }

    /// Adds a record. Returns its in-memory form, and the evicted conversations.
    pub(super) fn add(&mut self, record: &Record) -> (Arc<Record>, Vec<String>) {
        let sizes = Arc::new(without_entries(record));
        let id = record.session.clone();
        let row = CachedRecord { record: sizes.clone(), position: None };
        self.used(&id).rows.push_back(row);
        self.records += 1;
        (sizes, self.bound(&id))
    }

    /// Inserts the records of a file before newer ones.
    pub(super) fn restore(&mut self, info: SessionInfo, rows: Vec<(Record, RecordPosition)>) {
        let session = self.sessions.entry(info.id.clone()).or_default();
        if session.info.id.is_empty() {
            session.info = Arc::new(info);
        }
        self.records += rows.len();
        for (record, position) in rows.into_iter().rev() {
            session
                .rows
                .push_front(CachedRecord { record: Arc::new(record), position: Some(position) });
        }
    }

    /// Sets the position of a written record.
    pub(super) fn set_position(&mut self, session: &str, number: u64, position: RecordPosition) {
        let rows = self.sessions.get_mut(session).map(|session| session.rows.iter_mut().rev());
        let row = rows.and_then(|mut rows| rows.find(|row| row.record.number == number));
        if let Some(row) = row {
            row.position = Some(position);
        }
    }

    /// Records that a conversation's file was deleted.
    pub(super) fn clear_positions(&mut self, session: &str) {
        for row in self.sessions.get_mut(session).into_iter().flat_map(|session| &mut session.rows)
        {
            row.position = None;
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
        let mut all: Vec<&CachedSession> = self.sessions.values().collect();
        all.sort_by_key(|session| {
            let last = session.rows.back().map(|row| row.record.at);
            std::cmp::Reverse((last, session.used))
        });
        all.into_iter().map(trace).collect()
    }

    pub(super) fn one(&self, id: &str) -> Option<SessionTrace> {
        self.sessions.get(id).map(trace)
    }

    pub(super) fn record(
        &self,
        id: &str,
        number: u64,
    ) -> Option<(Arc<Record>, Option<RecordPosition>)> {
        let rows = &self.sessions.get(id)?.rows;
        let row = rows.iter().rev().find(|row| row.record.number == number)?;
        Some((row.record.clone(), row.position))
    }

    /// Removes a conversation.
    pub(super) fn remove(&mut self, id: &str) {
        if let Some(session) = self.sessions.remove(id) {
            self.records -= session.rows.len();
        }
    }

    fn used(&mut self, id: &str) -> &mut CachedSession {
        self.clock += 1;
        let session = self.sessions.entry(id.to_owned()).or_default();
        session.used = self.clock;
        if session.info.id.is_empty() {
            let info = SessionInfo { id: id.to_owned(), ..SessionInfo::default() };
            session.info = Arc::new(info);
        }
        session
    }

    /// Evicts the least recently used conversations until the cache is within its limits, and if
    /// necessary the oldest records of the one in use. Returns the evicted conversations. It evicts
    /// many at once, so that evictions are rare.
    fn bound(&mut self, in_use: &str) -> Vec<String> {
        let (records, sessions) = (self.limits.records, self.limits.records);
        if self.records <= records && self.sessions.len() <= sessions {
            return Vec::new();
        }
        let mut oldest: Vec<(u64, String)> =
            self.sessions.iter().map(|(id, session)| (session.used, id.clone())).collect();
        oldest.sort_unstable();
        let mut evicted = Vec::new();
        for (_, id) in oldest {
            if self.records <= records - records / 10 && self.sessions.len() <= sessions {
                break;
            }
            if id != in_use {
                self.remove(&id);
                evicted.push(id);
            }
        }
        if let Some(only) = self.sessions.get_mut(in_use) {
            while self.records > records && only.rows.pop_front().is_some() {
                self.records -= 1;
            }
        }
        evicted
    }
}

/// Returns the in-memory form of a record.
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

fn trace(session: &CachedSession) -> SessionTrace {
    let requests = session.rows.iter().map(|row| row.record.clone()).collect();
    SessionTrace { info: session.info.clone(), requests }
}
