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

/// So many conversations that begin alike are read from disk to be compared. Those in memory are
/// compared all.
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
    /// Those that begin alike in one group, by the beginning of their ids.
    alike: HashMap<String, Alike>,
    open: HashMap<String, Arc<Conversation>>,
    clock: u64,
}

/// Conversations that begin alike.
#[derive(Debug, Default)]
struct Alike {
    /// Oldest first.
    ids: Vec<String>,
    /// The number of the next one.
    next: u64,
}

impl Alike {
    fn add(&mut self, id: String) {
        self.next = self.next.max(number_of(&id).saturating_add(1));
        self.ids.push(id);
    }
}

/// Conversations, each with its place among those that begin alike.
type Placed<T> = Vec<(usize, T)>;

/// A conversation that a request may go on with.
struct Compared {
    /// How new it is among those that begin alike.
    place: usize,
    conversation: Arc<Conversation>,
    common: Common,
}

impl Compared {
    fn with(place: usize, conversation: Arc<Conversation>, told: &[Told<'_>]) -> Self {
        let common = common(&conversation.known(), told);
        Self { place, conversation, common }
    }

    /// Whether the request tells all that it holds, and a few messages more.
    fn goes_on(&self) -> bool {
        let more = self.common.ids.iter().filter(|id| id.is_none()).count();
        self.common.messages > 0 && self.common.removed == 0 && more <= TAKEN_BACK
    }
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
        ids.sort_by_cached_key(|id| (beginning_of(id).to_owned(), number_of(id)));
        for id in ids {
            all.alike.entry(beginning_of(&id).to_owned()).or_default().add(id);
        }
        Self { limits, keep, trace, all: Mutex::new(all) }
    }

    /// The conversation that a request goes on with: of those of its group the one with the longest
    /// common beginning. Where the request leaves that one early it is a conversation of its own,
    /// which begins with what was cut of the other.
    pub(super) async fn find(self: &Arc<Self>, group: &Group, told: &[Told<'_>]) -> Found {
        let beginning = format!("{}-{}", group.id, group.begins);
        let (open, closed) = self.alike(&beginning);
        let compare = |(place, conversation)| Compared::with(place, conversation, told);
        let mut compared: Vec<Compared> = open.into_iter().map(compare).collect();
        if !compared.iter().any(Compared::goes_on) {
            for (place, id) in closed {
                if let Some(conversation) = self.read(&beginning, &id).await {
                    compared.push(Compared::with(place, conversation, told));
                }
            }
        }
        let best = compared.into_iter().max_by_key(|compared| {
            let common = &compared.common;
            (common.messages, std::cmp::Reverse(common.removed), compared.place)
        });
        let found = match best.filter(|best| best.common.messages > 0) {
            Some(best) if best.common.removed <= TAKEN_BACK => {
                Found { conversation: self.open(best.conversation), ids: best.common.ids }
            }
            other => self.begin(&beginning, other, told.len()),
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
                alike.ids.retain(|id| *id != one.id);
                if alike.ids.is_empty() {
                    all.alike.remove(beginning);
                }
            }
        }
    }

    /// Those that begin alike: the ones in memory, and the newest of the others, by their
    /// names.
    fn alike(&self, beginning: &str) -> (Placed<Arc<Conversation>>, Placed<String>) {
        let all = self.lock();
        let (mut open, mut closed) = (Vec::new(), Vec::new());
        let ids = all.alike.get(beginning).map(|alike| &*alike.ids).unwrap_or_default();
        for (place, id) in ids.iter().enumerate().rev() {
            match all.open.get(id) {
                Some(conversation) => open.push((place, conversation.clone())),
                None if closed.len() < ALIKE => closed.push((place, id.clone())),
                None => {}
            }
        }
        (open, closed)
    }

    fn begin(&self, beginning: &str, from: Option<Compared>, units: usize) -> Found {
        let (saved, ids) = match from {
            Some(Compared { conversation: other, common, .. }) => {
                // One that is worked on right now gives nothing; the new one is cut by itself.
                let saved = other.work.try_lock().map(|work| work.inherit()).unwrap_or_default();
                (saved.within(&common.ids), common.ids)
            }
            None => (Saved::default(), vec![None; units]),
        };
        let mut all = self.lock();
        let alike = all.alike.entry(beginning.to_owned()).or_default();
        let id = match alike.next {
            0 => beginning.to_owned(),
            number => format!("{beginning}-{number}"),
        };
        alike.add(id.clone());
        let conversation = Arc::new(Conversation::new(id.clone(), saved, false, self.number(&id)));
        all.open.insert(id, conversation.clone());
        Found { conversation, ids }
    }

    /// Takes one into memory, where another request was not faster.
    fn open(&self, conversation: Arc<Conversation>) -> Arc<Conversation> {
        let mut all = self.lock();
        all.open.entry(conversation.id.clone()).or_insert(conversation).clone()
    }

    /// One that is on disk. A name whose file is gone is forgotten.
    async fn read(self: &Arc<Self>, beginning: &str, id: &str) -> Option<Arc<Conversation>> {
        if let Some(open) = self.in_memory(id) {
            return Some(open);
        }
        let (this, name) = (self.clone(), id.to_owned());
        let read = move || this.keep.as_ref()?.read(&name);
        let Some(saved) = tokio::task::spawn_blocking(read).await.ok().flatten() else {
            if let Some(alike) = self.lock().alike.get_mut(beginning) {
                alike.ids.retain(|known| known != id);
            }
            return None;
        };
        let conversation = Conversation::new(id.to_owned(), saved, true, self.number(id));
        Some(Arc::new(conversation))
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

/// Which of those it is: the first has no number of its own.
fn number_of(id: &str) -> u64 {
    let number = id.get(beginning_of(id).len() + 1..).unwrap_or_default();
    number.parse().unwrap_or_default()
}
