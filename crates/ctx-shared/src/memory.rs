//! What an agent remembers, in a shared store.
//!
//! Each host has a memory of its own in its home: archive, facts, and the indexes made of them. It
//! sends what it has archived, and fetches what others did, by number. Its position is beside the
//! archive, in `shared.json`.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::time::Duration;

use ctx_core::{Error, ErrorKind, Result, Timer};
use ctx_disk as disk;
use ctx_memory::Memory;
use ctx_memory::facts::{Fact, FactId, FactSelector, FactStore};
use ctx_search::{Segment, SegmentId};
use ctx_store::{Change, ChangeFuture, Record, RecordKind, SharedStore};
use serde::{Deserialize, Serialize};

use crate::sync::{locked, spawn_blocking};

/// The number of records in one answer of the store, and in one call.
pub(crate) const PAGE: usize = 1_000;

/// Turns fetch the changes of others this often.
pub(crate) const INTERVAL: Duration = Duration::from_secs(1);

/// The memory of an agent on this host.
#[derive(Clone)]
pub struct HostMemory {
    /// Its folder.
    pub folder: PathBuf,
    /// The archive.
    pub memory: Memory,
    /// The facts; absent if they cannot be read.
    pub facts: Option<Arc<Mutex<FactStore>>>,
}

ctx_core::partial_debug!(HostMemory, it, folder = it.folder);

/// The memory of one agent in a store.
#[derive(Default)]
pub(crate) struct SharedMemory {
    position: Option<Position>,
    /// The segments that the store has.
    segments: HashSet<SegmentId>,
    /// The facts that the store has, as their JSON.
    facts: HashMap<String, Vec<u8>>,
    /// When changes were last fetched.
    fetched: Option<Duration>,
    /// Ends when another host added records since then.
    changed: Option<ChangeFuture>,
    /// The memory that they were fetched into.
    host: Option<HostMemory>,
}

ctx_core::partial_debug!(SharedMemory, it, position = it.position);

/// The numbers up to which a home has the records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Position {
    segments: u64,
    facts: u64,
}

impl SharedMemory {
    /// Fetches what other hosts remember, unless that was done just now and no change is known.
    pub(crate) async fn fetch(
        &mut self,
        store: &dyn SharedStore,
        timer: &dyn Timer,
        agent: &str,
        memory: &HostMemory,
    ) -> Result<()> {
        let now = timer.elapsed();
        let is_recent = self.fetched.is_some_and(|before| now.saturating_sub(before) < INTERVAL);
        if is_recent && !self.is_changed() {
            return Ok(());
        }
        self.changed = Some(store.changed(Change::Records(agent)));
        self.host = Some(memory.clone());
        let file = position_file(&memory.folder);
        let before = match self.position {
            Some(position) => position,
            None => read_position(&file)?,
        };
        let mut position = before;
        position.segments = self.fetch_segments(store, agent, memory, position.segments).await?;
        position.facts = self.fetch_facts(store, agent, memory, position.facts).await?;
        if position != before {
            let text = serde_json::to_vec(&position).unwrap_or_default();
            spawn_blocking(move || disk::write_atomic(&file, &text)).await?;
        }
        (self.position, self.fetched) = (Some(position), Some(now));
        Ok(())
    }

    /// Whether the store has sent a notification.
    fn is_changed(&mut self) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        let changed = self.changed.as_mut();
        changed.is_some_and(|changed| changed.as_mut().poll(&mut context).is_ready())
    }

    /// Fetches the changes of others again, into the same memory, if that was not done within
    /// `interval`.
    pub(crate) async fn fetch_again(
        &mut self,
        store: &dyn SharedStore,
        timer: &dyn Timer,
        agent: &str,
        interval: Duration,
    ) -> Result<()> {
        let is_due = |before| timer.elapsed().saturating_sub(before) >= interval;
        match self.host.clone().filter(|_| self.fetched.is_none_or(is_due)) {
            Some(memory) => self.fetch(store, timer, agent, &memory).await,
            None => Ok(()),
        }
    }

    async fn fetch_segments(
        &mut self,
        store: &dyn SharedStore,
        agent: &str,
        memory: &HostMemory,
        mut after: u64,
    ) -> Result<u64> {
        loop {
            let changes = store.since(agent, RecordKind::Segment, after, PAGE).await?;
            if changes.next == after {
                return Ok(after);
            }
            let segments = parsed::<Segment>(&changes.records)?;
            let forgotten: HashSet<SegmentId> =
                changes.forgotten.iter().filter_map(|id| id.parse().ok()).collect();
            self.segments.extend(segments.iter().map(|segment| segment.id));
            self.segments.extend(&forgotten);
            let memory = memory.memory.clone();
            spawn_blocking(move || {
                memory.add(&segments)?;
                memory.flush()?;
                forget_segments(&memory, forgotten)
            })
            .await?;
            after = changes.next;
        }
    }

    async fn fetch_facts(
        &mut self,
        store: &dyn SharedStore,
        agent: &str,
        memory: &HostMemory,
        mut after: u64,
    ) -> Result<u64> {
        let Some(facts) = &memory.facts else { return Ok(after) };
        loop {
            let changes = store.since(agent, RecordKind::Fact, after, PAGE).await?;
            if changes.next == after {
                return Ok(after);
            }
            let fetched = parsed::<Fact>(&changes.records)?;
            self.facts.extend(changes.records.into_iter().map(|record| (record.id, record.bytes)));
            let forgotten: BTreeSet<FactId> =
                changes.forgotten.into_iter().filter_map(fact_id).collect();
            let facts = facts.clone();
            spawn_blocking(move || {
                let mut facts = locked(&facts);
                facts.merge(fetched)?;
                if !forgotten.is_empty() {
                    facts.forget(&[FactSelector::Facts(&forgotten)])?;
                }
                Ok(())
            })
            .await?;
            after = changes.next;
        }
    }

    /// Sends what this host has remembered since the last call.
    pub(crate) async fn send(
        &mut self,
        store: &dyn SharedStore,
        agent: &str,
        memory: &HostMemory,
    ) -> Result<()> {
        let known = std::mem::take(&mut self.segments);
        let archive = memory.memory.clone();
        let (known, new) = spawn_blocking(move || {
            let mut ids = Vec::new();
            archive.each_id(&mut |id| {
                if !known.contains(&id) {
                    ids.push(id);
                }
            })?;
            let new: Vec<Segment> = archive.get(&ids)?.into_iter().flatten().collect();
            Ok((known, new))
        })
        .await?;
        self.segments = known;
        for page in new.chunks(PAGE) {
            let records: Vec<Record> = page.iter().filter_map(|s| record(&s.id, s)).collect();
            store.put(agent, RecordKind::Segment, &records).await?;
            self.segments.extend(page.iter().map(|segment| segment.id));
        }
        self.send_facts(store, agent, memory).await
    }

    /// Sends the facts that changed since the last call.
    pub(crate) async fn send_facts(
        &mut self,
        store: &dyn SharedStore,
        agent: &str,
        memory: &HostMemory,
    ) -> Result<()> {
        let Some(facts) = &memory.facts else { return Ok(()) };
        let changed: Vec<Record> = {
            let facts = locked(facts);
            let records = facts.facts().filter_map(|fact| record(&fact.id, fact));
            records.filter(|record| self.facts.get(&record.id) != Some(&record.bytes)).collect()
        };
        for page in changed.chunks(PAGE) {
            store.put(agent, RecordKind::Fact, page).await?;
            self.facts.extend(page.iter().map(|record| (record.id.clone(), record.bytes.clone())));
        }
        Ok(())
    }
}

fn record(id: &impl ToString, value: &impl Serialize) -> Option<Record> {
    Some(Record { id: id.to_string(), bytes: serde_json::to_vec(value).ok()? })
}

/// Forgets segments, unless that was done before: it takes an index that is rebuilt.
fn forget_segments(memory: &Memory, mut ids: HashSet<SegmentId>) -> Result<()> {
    if ids.is_empty() {
        return Ok(());
    }
    let mut done: HashSet<SegmentId> = memory.forgotten()?.into_iter().collect();
    // If the process was killed, a segment is there although it is in the list.
    memory.each_id(&mut |id| {
        done.remove(&id);
    })?;
    ids.retain(|id| !done.contains(id));
    if ids.is_empty() { Ok(()) } else { memory.forget(&ids).map(drop) }
}

/// Returns the id of a record of a fact.
fn fact_id(id: String) -> Option<FactId> {
    serde_json::from_value(id.into()).ok()
}

fn parsed<T: for<'de> Deserialize<'de>>(records: &[Record]) -> Result<Vec<T>> {
    let parse = |record: &Record| {
        serde_json::from_slice(&record.bytes).map_err(|error| {
            Error::new(ErrorKind::Corrupt, "a record of the shared store is damaged")
                .with("id", &record.id)
                .source(error)
                .hint("`ctx store check` examines the store")
        })
    };
    records.iter().map(parse).collect()
}

fn position_file(folder: &Path) -> PathBuf {
    folder.join("shared.json")
}

/// Returns the position of a home; the beginning, if there is none or it cannot be read: all records
/// are fetched again then.
fn read_position(file: &Path) -> Result<Position> {
    match disk::read(file) {
        Ok(text) => Ok(serde_json::from_slice(&text).unwrap_or_default()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Position::default()),
        Err(error) => {
            Err(disk::io_error("cannot read the position in the shared store", file, error))
        }
    }
}
