//! Archives a transcript, message by message.

use std::collections::HashSet;

use ctx_core::{Result, Timestamp};
use ctx_memory::archive::{AddOutcome, SegmentMaker};
use ctx_memory::facts::LearnOutcome;
use ctx_search::SegmentId;
use ctx_session::BranchMessage;
use serde::Serialize;

use super::Lookup;
use crate::memory::{BATCH_SIZE, learn_facts};

/// What happened to the messages of a transcript.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct IngestReport {
    /// Number of messages.
    pub messages: usize,
    /// Number of new segments.
    pub added: usize,
    /// Number of messages that were already in the archive.
    pub known: usize,
    /// Number of messages that repeat an earlier message of the same transcript.
    pub repeated: usize,
    /// Number of messages that were forgotten, and are not archived again.
    pub forgotten: usize,
    /// Number of messages older than the archive's retention.
    pub older: usize,
    /// Number of messages without text, or with recalled text.
    pub passed_over: usize,
    /// The outcome of extracting facts, for each batch.
    #[serde(skip)]
    pub facts: Vec<LearnOutcome>,
}

impl Lookup {
    /// Archives messages of a session, whose name in memory is `session`, and extracts their facts.
    /// `archived` receives the number of messages of each batch that is on disk.
    ///
    /// # Errors
    ///
    /// If a message cannot be read, or the archive cannot be read or written. Archived messages
    /// stay.
    pub fn ingest(
        &self,
        session: &str,
        line: &[BranchMessage],
        now: Timestamp,
        mut archived: impl FnMut(usize) -> Result<()>,
    ) -> Result<IngestReport> {
        let maker = self.maker(session);
        let mut done = IngestReport::default();
        let evicted = self.would_evict(&maker, line, now)?;
        let mut seen = HashSet::new();
        for items in line.chunks(BATCH_SIZE) {
            let mut segments = Vec::with_capacity(items.len());
            let mut coming = Vec::with_capacity(items.len());
            for item in items {
                let Some(segment) = maker.of_entry(&item.entry, now)? else {
                    done.passed_over += 1;
                    continue;
                };
                if !seen.insert(segment.id) {
                    done.repeated += 1;
                } else if evicted.contains(&segment.id) {
                    done.older += 1;
                } else {
                    coming.push(segments.len());
                }
                segments.push(segment);
            }
            let mut forgotten = HashSet::new();
            let taken = self.memory.insert(coming.iter().map(|at| &segments[*at]))?;
            for (at, taken) in coming.iter().zip(taken) {
                match taken {
                    AddOutcome::New => done.added += 1,
                    AddOutcome::Duplicate => done.known += 1,
                    AddOutcome::Empty => done.passed_over += 1,
                    AddOutcome::Forgotten => {
                        done.forgotten += 1;
                        forgotten.insert(segments[*at].id);
                    }
                }
            }
            done.messages += items.len();
            // Facts of forgotten messages are not learned again either.
            segments.retain(|segment| !forgotten.contains(&segment.id));
            done.facts.extend(learn_facts(self.facts.as_ref(), &self.config, &segments)?);
            // A batch is on disk before the next one is read.
            self.memory.flush()?;
            archived(items.len())?;
        }
        Ok(done)
    }

    /// Returns the segments that the archive would evict at once, if the transcript does not fit.
    fn would_evict(
        &self,
        maker: &SegmentMaker,
        line: &[BranchMessage],
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
        self.memory.would_evict(&coming)
    }
}
