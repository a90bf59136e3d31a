//! Archiving a transcript, message by message.

use std::collections::HashSet;

use ctx_core::{Result, Timestamp};
use ctx_memory::SegmentId;
use ctx_memory::archive::{SegmentMaker, Taken};
use ctx_memory::facts::Learned;
use ctx_session::LineItem;
use serde::Serialize;

use super::Lookup;
use crate::memory::{BATCH, learn};

/// What became of the messages of a transcript.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Ingested {
    /// How many there were.
    pub messages: usize,
    /// New segments.
    pub added: usize,
    /// Messages that were in the archive before.
    pub known: usize,
    /// Messages that say what one before them in the same transcript says.
    pub repeated: usize,
    /// Messages that were forgotten, and stay out.
    pub forgotten: usize,
    /// Messages older than what the archive keeps.
    pub older: usize,
    /// Messages that say nothing, or hold what was recalled.
    pub passed_over: usize,
    /// What was learned of facts.
    #[serde(skip)]
    pub facts: Vec<Learned>,
}

impl Lookup {
    /// Archives messages of a session, which is called `session` in memory, and learns the facts in them.
    /// `archived` hears of each batch that is on the disk how many messages it has.
    ///
    /// # Errors
    ///
    /// If a message cannot be read, or the archive not be read or written. What was archived stays.
    pub fn ingest(
        &self,
        session: &str,
        line: &[LineItem],
        now: Timestamp,
        mut archived: impl FnMut(usize) -> Result<()>,
    ) -> Result<Ingested> {
        let maker = self.maker(session);
        let mut done = Ingested::default();
        let no_room = self.without_room(&maker, line, now)?;
        let mut seen = HashSet::new();
        for items in line.chunks(BATCH) {
            let mut segments = Vec::with_capacity(items.len());
            let mut coming = Vec::with_capacity(items.len());
            for item in items {
                let Some(segment) = maker.of_entry(&item.entry, now)? else {
                    done.passed_over += 1;
                    continue;
                };
                if !seen.insert(segment.id) {
                    done.repeated += 1;
                } else if no_room.contains(&segment.id) {
                    done.older += 1;
                } else {
                    coming.push(segments.len());
                }
                segments.push(segment);
            }
            let mut forgotten = HashSet::new();
            let taken = self.memory.take_in(coming.iter().map(|at| &segments[*at]))?;
            for (at, taken) in coming.iter().zip(taken) {
                match taken {
                    Taken::New => done.added += 1,
                    Taken::Known => done.known += 1,
                    Taken::Nothing => done.passed_over += 1,
                    Taken::Forgotten => {
                        done.forgotten += 1;
                        forgotten.insert(segments[*at].id);
                    }
                }
            }
            done.messages += items.len();
            // Facts that were forgotten with a message stay out as it does.
            segments.retain(|segment| !forgotten.contains(&segment.id));
            done.facts.extend(learn(self.facts.as_ref(), &self.config, &segments)?);
            // What was archived is on the disk before the next batch is read.
            self.memory.flush()?;
            archived(items.len())?;
        }
        Ok(done)
    }

    /// What the archive would let go again at once, of a transcript that does not fit into it as a whole.
    fn without_room(
        &self,
        maker: &SegmentMaker,
        line: &[LineItem],
        now: Timestamp,
    ) -> Result<HashSet<SegmentId>> {
        let most = self.config.max_segments as usize;
        if self.memory.stats()?.segments + line.len() <= most {
            return Ok(HashSet::new());
        }
        let mut coming = Vec::with_capacity(line.len());
        for item in line {
            let segment = maker.of_entry(&item.entry, now)?;
            coming.extend(segment.map(|segment| (segment.id, segment.timestamp)));
        }
        self.memory.without_room(&coming)
    }
}
