//! Which conversation a request belongs to.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ctx_core::EntryId;

use super::conversation::Conversation;
use super::group::Group;
use super::keep::{Keep, Saved};
use super::told::{Common, Told, common};
use crate::trace::Trace;

/// So many messages at the end of a conversation may be told no more before a request is taken for
/// another one that begins alike: an answer that is asked for again, a turn that was taken back.
const TAKEN_BACK: usize = 4;

/// So many conversations that begin alike are compared.
const ALIKE: usize = 16;

/// How much stays in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Conversations.
    pub(super) count: usize,
    /// Bytes, about.
    pub(super) bytes: usize,
}

/// All conversations: those in memory, and the names of those on disk.
#[derive(Debug)]
pub(super) struct Conversations {
    limits: Limits,
    pub(super) keep: Option<Keep>,
    trace: Arc<Trace>,
    all: Mutex<All>,
}

#[derive(Debug, Default)]
struct All {
    /// Those that begin alike in one group, by the beginning of their ids, oldest first.
    alike: HashMap<String, Vec<String>>,
    open: HashMap<String, Arc<Conversation>>,
    clock: u64,
}

/// The conversation of a request.
pub(super) struct Found {
    pub(super) conversation: Arc<Conversation>,
    /// For each unit the id of the message it is known as.
    pub(super) ids: Vec<Option<EntryId>>,
}

impl Conversations {
    pub(super) fn new(limits: Limits, keep: Option<Keep>, trace: Arc<Trace>) -> Self {
        let mut all = All::default();
        let mut ids = keep.as_ref().map(Keep::ids).unwrap_or_default();
        ids.sort();
        for id in ids {
            all.alike.entry(beginning_of(&id).to_owned()).or_default().push(id);
        }
        Self { limits, keep, trace, all: Mutex::new(all) }
    }

    /// The conversation that a request goes on with: of those of its group the one with the longest
    /// common beginning. Where the request leaves that one early it is a conversation of its own,
    /// which begins with what was cut of the other.
    pub(super) async fn find(self: &Arc<Self>, group: &Group, told: &[Told<'_>]) -> Found {
        let beginning = format!("{}-{}", group.id, group.begins);
        let alike = self.lock().alike.get(&beginning).cloned().unwrap_or_default();
        let mut compared = Vec::new();
        for id in alike.iter().rev().take(ALIKE) {
            if let Some(conversation) = self.open(id).await {
                let common = common(&conversation.known(), told);
                compared.push((conversation, common));
            }
        }
        let best = compared
            .into_iter()
            .rev()
            .max_by_key(|(_, common)| (common.messages, std::cmp::Reverse(common.removed)))
            .filter(|(_, common)| common.messages > 0);
        let found = match best {
            Some((conversation, common)) if common.removed <= TAKEN_BACK => {
                Found { conversation, ids: common.ids }
            }
            other => self.begin(&beginning, &alike, other, told.len()),
        };
        self.used(&found.conversation);
        found
    }

    /// The conversation of that id, if it is in memory.
    pub(super) fn in_memory(&self, id: &str) -> Option<Arc<Conversation>> {
        self.lock().open.get(id).cloned()
    }

    /// How many are in memory.
    pub(super) fn count(&self) -> usize {
        self.lock().open.len()
    }

    /// Lets conversations go from memory until there are few enough. One that is worked on goes
    /// when that is done.
    pub(super) fn bound(&self, in_use: &Conversation) {
        let mut all = self.lock();
        let mut weight: usize = all.open.values().map(|one| one.weight()).sum();
        let is_over =
            |count: usize, weight: usize| count > self.limits.count || weight > self.limits.bytes;
        if !is_over(all.open.len(), weight) {
            return;
        }
        let mut oldest: Vec<Arc<Conversation>> =
            all.open.values().filter(|one| one.id != in_use.id).cloned().collect();
        oldest.sort_unstable_by_key(|one| one.used());
        for one in oldest {
            if !is_over(all.open.len(), weight) {
                return;
            }
            weight -= one.weight().min(weight);
            all.open.remove(&one.id);
            // What was not cut can be made anew: nobody has to remember its name.
            let beginning = beginning_of(&one.id);
            if !one.is_kept()
                && let Some(alike) = all.alike.get_mut(beginning)
            {
                alike.retain(|id| *id != one.id);
                if alike.is_empty() {
                    all.alike.remove(beginning);
                }
            }
        }
    }

    fn begin(
        &self,
        beginning: &str,
        alike: &[String],
        from: Option<(Arc<Conversation>, Common)>,
        units: usize,
    ) -> Found {
        let (saved, ids) = match from {
            Some((other, common)) => {
                // One that is worked on right now gives nothing; the new one is cut by itself.
                let saved = other.work.try_lock().map(|work| work.inherit()).unwrap_or_default();
                (saved.within(&common.ids), common.ids)
            }
            None => (Saved::default(), vec![None; units]),
        };
        let mut all = self.lock();
        let is_taken = |id: &String| alike.contains(id) || all.open.contains_key(id);
        let numbered = (1..).map(|n| format!("{beginning}-{n}"));
        let mut names = std::iter::once(beginning.to_owned()).chain(numbered);
        let id = names.find(|id| !is_taken(id)).unwrap_or_else(|| beginning.to_owned());
        let conversation = Arc::new(Conversation::new(id.clone(), saved, false, self.number(&id)));
        all.alike.entry(beginning.to_owned()).or_default().push(id.clone());
        all.open.insert(id, conversation.clone());
        Found { conversation, ids }
    }

    /// One that is in memory, or brought back from disk.
    async fn open(self: &Arc<Self>, id: &str) -> Option<Arc<Conversation>> {
        if let Some(open) = self.in_memory(id) {
            return Some(open);
        }
        let (this, name) = (self.clone(), id.to_owned());
        let read = move || this.keep.as_ref()?.read(&name);
        let saved = tokio::task::spawn_blocking(read).await.ok().flatten()?;
        let conversation = Conversation::new(id.to_owned(), saved, true, self.number(id));
        // Another request may have been faster.
        let mut all = self.lock();
        Some(all.open.entry(id.to_owned()).or_insert_with(|| Arc::new(conversation)).clone())
    }

    /// The number of the next request of a conversation.
    fn number(&self, id: &str) -> u64 {
        let trace = self.trace.of_session(id);
        let last = trace.and_then(|trace| trace.requests.last().map(|record| record.number));
        last.map_or(0, |last| last + 1)
    }

    fn used(&self, conversation: &Conversation) {
        let mut all = self.lock();
        all.clock += 1;
        conversation.touch(all.clock);
    }

    fn lock(&self) -> MutexGuard<'_, All> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What all conversations of a group that begin alike have at the beginning of their ids.
fn beginning_of(id: &str) -> &str {
    let ends = id.match_indices('-').nth(1).map(|(at, _)| at);
    &id[..ends.unwrap_or(id.len())]
}
