//! Finds the conversation of a request.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ctx_core::{EntryId, Result};
use ctx_trace::Trace;

use super::conversation::Conversation;
use super::cut_store::CutStore;
use super::fingerprint::Fingerprint;
use super::store::SavedConversation;
use super::units::{CommonPrefix, RequestUnit, common_prefix, digest_of_all};

/// Maximum number of final messages that may be missing from a request of the same conversation, as
/// after a regenerated answer or an undone turn. If more are missing, it starts a new one.
const MAX_REMOVED: usize = 4;

/// Maximum number of similar conversations read from disk for comparison. Those in memory are all
/// compared.
const MAX_CANDIDATES: usize = 16;

/// Maximum number of conversations of a key that are compared with a quoted history.
const MOST_COMPARED: usize = 64;

/// Approximate memory limit of conversations in bytes. A conversation of a million tokens takes
/// about twelve million.
const MOST_BYTES: usize = 128 << 20;

/// All conversations: those in memory, and the ids of those on disk.
#[derive(Debug)]
pub(super) struct Conversations {
    /// The maximum number in memory.
    most: usize,
    pub(super) store: Option<CutStore>,
    trace: Arc<Trace>,
    all: Mutex<ConversationIndex>,
}

#[derive(Debug, Default)]
struct ConversationIndex {
    /// Groups of conversations with the same beginning, by id prefix.
    groups: HashMap<String, ConversationGroup>,
    open: HashMap<String, Arc<Conversation>>,
    clock: u64,
}

/// Conversations with the same beginning.
#[derive(Debug, Default)]
struct ConversationGroup {
    /// The ids, oldest first.
    ids: Vec<String>,
    /// The number of the next conversation.
    next: u64,
}

impl ConversationGroup {
    fn add(&mut self, id: String) {
        self.next = self.next.max(number_of(&id).saturating_add(1));
        self.ids.push(id);
    }
}

/// Conversations with their positions in the group.
type Positioned<T> = Vec<(usize, T)>;

/// A candidate for the conversation of a request.
struct Candidate {
    /// The position in the group; later is newer.
    position: usize,
    conversation: Arc<Conversation>,
    common_prefix: CommonPrefix,
}

impl Candidate {
    fn with(position: usize, conversation: Arc<Conversation>, units: &[RequestUnit<'_>]) -> Self {
        let common_prefix = common_prefix(&conversation.known(), units);
        Self { position, conversation, common_prefix }
    }

    /// Whether the request contains all messages of the conversation, and at most a few more.
    fn is_continued(&self) -> bool {
        let more = self.common_prefix.ids.iter().filter(|id| id.is_none()).count();
        self.common_prefix.messages > 0 && self.common_prefix.removed == 0 && more <= MAX_REMOVED
    }
}

/// The conversation of a request.
pub(super) struct ConversationMatch {
    pub(super) conversation: Arc<Conversation>,
    /// The message id of each unit, if known.
    pub(super) ids: Vec<Option<EntryId>>,
}

impl Conversations {
    pub(super) fn new(most: usize, store: Option<CutStore>, trace: Arc<Trace>) -> Self {
        let mut all = ConversationIndex::default();
        let mut ids = store.as_ref().map(CutStore::ids).unwrap_or_default();
        ids.sort_by_cached_key(|id| (group_of(id).to_owned(), number_of(id)));
        for id in ids {
            all.groups.entry(group_of(&id).to_owned()).or_default().add(id);
        }
        Self { most, store, trace, all: Mutex::new(all) }
    }

    /// Returns the conversation of a request: the one of its group with the longest common
    /// beginning. If the request diverges early, it starts a new conversation, which inherits the
    /// cuts of the common part.
    pub(super) async fn find(
        self: &Arc<Self>,
        fingerprint: &Fingerprint,
        units: &[RequestUnit<'_>],
    ) -> ConversationMatch {
        let group_id = fingerprint.group_id();
        let (open, closed) = self.candidates(&group_id);
        let compare = |(position, conversation)| Candidate::with(position, conversation, units);
        let mut candidates: Vec<Candidate> = open.into_iter().map(compare).collect();
        if !candidates.iter().any(Candidate::is_continued) {
            for (position, id) in closed {
                if let Some(conversation) = self.read(&group_id, &id).await {
                    candidates.push(Candidate::with(position, conversation, units));
                }
            }
        }
        let best = candidates.into_iter().max_by_key(|candidate| {
            let common = &candidate.common_prefix;
            (common.messages, std::cmp::Reverse(common.removed), candidate.position)
        });
        let found = match best.filter(|best| best.common_prefix.messages > 0) {
            Some(best) if best.common_prefix.removed <= MAX_REMOVED => ConversationMatch {
                conversation: self.open(best.conversation),
                ids: best.common_prefix.ids,
            },
            other => self.begin(&group_id, other, units),
        };
        self.used(&found.conversation);
        found.conversation.key.get_or_init(|| fingerprint.key.clone());
        found
    }

    /// Learns what other replicas have stored of the conversations with the same beginning as a
    /// request. Those in memory that they have extended are read again.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub(super) async fn refresh(&self, fingerprint: &Fingerprint) -> Result<()> {
        let Some(store) = &self.store else { return Ok(()) };
        let group_id = fingerprint.group_id();
        let listed = store.of_replicas(&group_id).await?;
        let mut all = self.lock();
        for (id, lines) in listed.into_iter().filter(|(id, _)| group_of(id) == group_id) {
            if all.open.get(&id).is_some_and(|open| open.lines() < lines) {
                all.open.remove(&id);
            }
            let group = all.groups.entry(group_id.clone()).or_default();
            if !group.ids.contains(&id) {
                group.add(id);
                group.ids.sort_by_key(|id| number_of(id));
            }
        }
        Ok(())
    }

    /// Removes a conversation from memory that another replica has extended meanwhile.
    pub(super) fn forget(&self, conversation: &Arc<Conversation>) {
        let mut all = self.lock();
        if all.open.get(&conversation.id).is_some_and(|open| Arc::ptr_eq(open, conversation)) {
            all.open.remove(&conversation.id);
        }
    }

    /// Returns the conversation with that id, if it is in memory.
    pub(super) fn in_memory(&self, id: &str) -> Option<Arc<Conversation>> {
        self.lock().open.get(id).cloned()
    }

    /// Returns the conversation in memory that was used last, of those whose ids begin with `prefix`.
    /// Requests for a title or a summary have a few messages, and are left out.
    pub(super) fn last_used(&self, prefix: &str) -> Option<Arc<Conversation>> {
        const LEAST: usize = 4;
        let all = self.lock();
        let is_long = |one: &&Arc<Conversation>| one.known().len() >= LEAST;
        let named = all.open.values().filter(|one| one.id.starts_with(prefix)).filter(is_long);
        named.max_by_key(|one| one.used()).cloned()
    }

    /// Returns the conversations in memory of a key, the one last used first.
    pub(super) fn of_key(&self, key: &str) -> Vec<Arc<Conversation>> {
        let all = self.lock();
        let is_own = |one: &&Arc<Conversation>| one.key.get().is_some_and(|own| own == key);
        let mut own: Vec<_> = all.open.values().filter(is_own).cloned().collect();
        own.sort_unstable_by_key(|one| std::cmp::Reverse(one.used()));
        own.truncate(MOST_COMPARED);
        own
    }

    /// Returns the number of conversations in memory.
    pub(super) fn count(&self) -> usize {
        self.lock().open.len()
    }

    /// Evicts the least recently used conversations from memory until the rest is within the
    /// limits. `in_use` is not evicted.
    pub(super) fn bound(&self, in_use: &Conversation) {
        let mut all = self.lock();
        let mut weight: usize = all.open.values().map(|one| one.weight()).sum();
        let is_over = |count: usize, weight: usize| count > self.most || weight > MOST_BYTES;
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
            // An unstored one has no cuts: the next request rebuilds it.
            let group_id = group_of(&one.id);
            if !one.is_stored()
                && let Some(group) = all.groups.get_mut(group_id)
            {
                group.ids.retain(|id| *id != one.id);
                if group.ids.is_empty() {
                    all.groups.remove(group_id);
                }
            }
        }
    }

    /// Returns the conversations with the same beginning: those in memory, and the ids of the
    /// newest others.
    fn candidates(&self, group_id: &str) -> (Positioned<Arc<Conversation>>, Positioned<String>) {
        let all = self.lock();
        let (mut open, mut closed) = (Vec::new(), Vec::new());
        let ids = all.groups.get(group_id).map(|group| &*group.ids).unwrap_or_default();
        for (position, id) in ids.iter().enumerate().rev() {
            match all.open.get(id) {
                Some(conversation) => open.push((position, conversation.clone())),
                None if closed.len() < MAX_CANDIDATES => closed.push((position, id.clone())),
                None => {}
            }
        }
        (open, closed)
    }

    /// Begins a conversation, unless another request with the same history has just begun it.
    fn begin(
        &self,
        group_id: &str,
        from: Option<Candidate>,
        units: &[RequestUnit<'_>],
    ) -> ConversationMatch {
        let first = digest_of_all(units);
        let (saved, ids) = match from {
            Some(Candidate { conversation: other, common_prefix, .. }) => {
                // If the other one is in use, nothing is inherited: the new one makes its own cuts.
                let saved = other.state.try_lock().map(|state| state.inherit()).unwrap_or_default();
                (saved.within(&common_prefix.ids), common_prefix.ids)
            }
            None => (SavedConversation::default(), vec![None; units.len()]),
        };
        let mut all = self.lock();
        let begun = all.groups.get(group_id).map(|group| &*group.ids).unwrap_or_default();
        let begun = begun.iter().filter_map(|id| all.open.get(id));
        if let Some(conversation) = begun.rev().find(|begun| begun.waits_for(first)) {
            let ids = vec![None; units.len()];
            return ConversationMatch { conversation: conversation.clone(), ids };
        }
        let group = all.groups.entry(group_id.to_owned()).or_default();
        let id = match group.next {
            0 => group_id.to_owned(),
            number => format!("{group_id}-{number}"),
        };
        group.add(id.clone());
        let conversation = Conversation::new(id.clone(), saved, self.number(&id));
        let conversation = Arc::new(conversation.with_first(first));
        all.open.insert(id, conversation.clone());
        ConversationMatch { conversation, ids }
    }

    /// Adds a conversation to memory, unless another request was faster.
    fn open(&self, conversation: Arc<Conversation>) -> Arc<Conversation> {
        let mut all = self.lock();
        all.open.entry(conversation.id.clone()).or_insert(conversation).clone()
    }

    /// Reads a conversation from disk. An id without a file is forgotten.
    async fn read(self: &Arc<Self>, group_id: &str, id: &str) -> Option<Arc<Conversation>> {
        if let Some(open) = self.in_memory(id) {
            return Some(open);
        }
        let (this, name) = (self.clone(), id.to_owned());
        let read = move || this.store.as_ref()?.read(&name);
        let Some(saved) = tokio::task::spawn_blocking(read).await.ok().flatten() else {
            if let Some(group) = self.lock().groups.get_mut(group_id) {
                group.ids.retain(|known| known != id);
            }
            return None;
        };
        let conversation = Conversation::new(id.to_owned(), saved, self.number(id));
        Some(Arc::new(conversation))
    }

    /// Returns the number of the next request of a conversation.
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

    fn lock(&self) -> MutexGuard<'_, ConversationIndex> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the id prefix shared by conversations with the same beginning.
fn group_of(id: &str) -> &str {
    let ends = id.match_indices('-').nth(1).map(|(at, _)| at);
    &id[..ends.unwrap_or(id.len())]
}

/// Returns the number of a conversation in its group. The id of the first contains none.
fn number_of(id: &str) -> u64 {
    id.splitn(3, '-').nth(2).and_then(|number| number.parse().ok()).unwrap_or_default()
}
