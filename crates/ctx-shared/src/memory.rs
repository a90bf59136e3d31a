//! What an agent remembers, in a shared store.
//!
//! Each host has a memory of its own in its home: archive, facts, and the indexes made of them. It
//! sends what it has archived, and fetches what others did, by number. Its position is beside the
//! archive, in `shared.json`.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ctx_core::{Error, ErrorKind, Result, Timer};
use ctx_disk as disk;
use ctx_memory::Memory;
use ctx_memory::facts::{Fact, FactStore};
use ctx_search::{Segment, SegmentId};
use ctx_store::{Record, RecordKind, SharedStore};
use serde::{Deserialize, Serialize};

use crate::sync::spawn_blocking;

/// The number of records in one answer of the store, and in one call.
const PAGE: usize = 1_000;

/// Turns fetch the changes of others this often.
const INTERVAL: Duration = Duration::from_secs(1);

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
#[derive(Debug, Default)]
pub(crate) struct SharedMemory {
    position: Option<Position>,
    /// The segments that the store has.
    segments: HashSet<SegmentId>,
    /// The facts that the store has, as their JSON.
    facts: HashMap<String, Vec<u8>>,
    /// When changes were last fetched.
    fetched: Option<Duration>,
}

/// The numbers up to which a home has the records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Position {
    segments: u64,
    facts: u64,
}

impl SharedMemory {
    /// Fetches what other hosts remember, if that was not done just now.
    pub(crate) async fn fetch(
        &mut self,
        store: &dyn SharedStore,
        timer: &dyn Timer,
        agent: &str,
        memory: &HostMemory,
    ) -> Result<()> {
        let now = timer.elapsed();
        if self.fetched.is_some_and(|before| now.saturating_sub(before) < INTERVAL) {
            return Ok(());
        }
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
                if !forgotten.is_empty() {
                    memory.forget(&forgotten)?;
                }
                Ok(())
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
            let facts = facts.clone();
            spawn_blocking(move || {
                facts.lock().unwrap_or_else(PoisonError::into_inner).merge(fetched)
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
        let Some(facts) = &memory.facts else { return Ok(()) };
        let changed: Vec<Record> = {
            let facts = facts.lock().unwrap_or_else(PoisonError::into_inner);
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
