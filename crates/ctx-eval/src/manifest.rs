//! The manifest of any request of a replay, reconstructed from the edits made up to it.

use std::collections::HashMap;

use ctx_core::{Action, Counter, Edit, EntryId, ManifestEntry, NodeState, Result, Tokens};
use ctx_session::ReplayMessage;

use crate::{EditedMessage, RequestDetail};

/// Returns where the messages of each request of a line end. Request `at` contains the messages
/// before index `ends[at]`.
#[must_use]
pub fn request_ends(line: &[ReplayMessage]) -> Vec<usize> {
    let requests = line.iter().enumerate().filter(|(_, item)| item.item.request);
    requests.map(|(place, _)| place).collect()
}

/// Returns every message of request `at` (counted from 0) with its state. Messages of the
/// transcript are in order, and each inserted message is before its successor. `line` has the
/// replayed messages up to the request. `details` are the details of the replay.
///
/// The replay only stores edits, so this takes time in proportion to the number of edits and
/// messages.
///
/// # Errors
///
/// Errors of reading a message.
pub fn manifest_at(
    line: &[ReplayMessage],
    details: &[RequestDetail],
    counter: &Counter,
    at: usize,
) -> Result<Vec<ManifestEntry>> {
    let mut states = MessageStates::of(line, counter)?;
    for detail in details.iter().take(at.saturating_add(1)) {
        let forms: HashMap<&EntryId, &EditedMessage> =
            detail.forms.iter().map(|form| (&form.entry, form)).collect();
        for edit in &detail.edits {
            states.take(edit, forms.get(&edit.entry).copied());
        }
    }
    Ok(states.in_order(line.len()))
}

/// The state of each message so far.
struct MessageStates {
    entries: Vec<ManifestEntry>,
    index: HashMap<EntryId, usize>,
    /// For each inserted message, in the order of insertion: the message after it.
    added: Vec<Option<EntryId>>,
}

impl MessageStates {
    fn of(line: &[ReplayMessage], counter: &Counter) -> Result<Self> {
        let mut entries = Vec::with_capacity(line.len());
        let mut index = HashMap::with_capacity(line.len());
        for ReplayMessage { item, .. } in line {
            let (facts, tokens) = item.entry.measure(counter)?;
            index.insert(item.entry.id().clone(), entries.len());
            entries.push(ManifestEntry {
                entry: item.entry.id().clone(),
                role: facts.role.name().to_owned(),
                state: NodeState::Kept,
                before: tokens,
                tokens,
                layer: None,
                reason: None,
            });
        }
        Ok(Self { entries, index, added: Vec::new() })
    }

    fn take(&mut self, edit: &Edit, form: Option<&EditedMessage>) {
        let at = match (edit.action, self.index.get(&edit.entry)) {
            (Action::Pin | Action::Move, _) => return,
            (Action::Insert, None) => self.add(edit, form),
            (_, None) => return,
            (_, Some(&at)) => at,
        };
        let Some(entry) = self.entries.get_mut(at) else { return };
        entry.state = match edit.action {
            Action::Drop => NodeState::Dropped,
            Action::Insert => NodeState::Inserted,
            // An inserted message stays inserted in another form too.
            _ if entry.state == NodeState::Inserted => NodeState::Inserted,
            _ => NodeState::Replaced,
        };
        entry.tokens = edit.after;
        entry.layer = Some(edit.layer.clone());
        entry.reason = Some(edit.reason.clone());
    }

    fn add(&mut self, edit: &Edit, form: Option<&EditedMessage>) -> usize {
        let at = self.entries.len();
        self.index.insert(edit.entry.clone(), at);
        self.added.push(form.and_then(|form| form.before.clone()));
        self.entries.push(ManifestEntry {
            entry: edit.entry.clone(),
            role: form.map_or_else(|| "user".to_owned(), |form| form.role.clone()),
            state: NodeState::Inserted,
            before: Tokens::ZERO,
            tokens: edit.after,
            layer: None,
            reason: None,
        });
        at
    }

    /// Returns the entries in order. Inserted entries, which are stored after the first `said`, are
    /// moved to their positions.
    fn in_order(mut self, said: usize) -> Vec<ManifestEntry> {
        let added = self.entries.split_off(said);
        if added.is_empty() {
            return self.entries;
        }
        let place = |before: Option<EntryId>| {
            before.and_then(|id| self.index.get(&id).copied()).unwrap_or(said)
        };
        let mut placed: Vec<(usize, ManifestEntry)> =
            self.added.into_iter().map(place).zip(added).collect();
        placed.sort_by_key(|(place, _)| *place);
        let mut placed = placed.into_iter().peekable();
        let mut all = Vec::with_capacity(said + placed.len());
        for (place, entry) in self.entries.into_iter().enumerate() {
            while let Some((_, added)) = placed.next_if(|(before, _)| *before <= place) {
                all.push(added);
            }
            all.push(entry);
        }
        all.extend(placed.map(|(_, entry)| entry));
        all
    }
}
