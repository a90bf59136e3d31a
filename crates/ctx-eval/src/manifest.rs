//! The manifest of any request of a replay, from the edits that were made up to it.

use std::collections::HashMap;

use ctx_core::{Action, Counter, Edit, EntryId, ManifestEntry, NodeState, Result, Tokens};
use ctx_session::compactions::ReplayItem;

use crate::{Form, RequestDetail};

/// Where the messages of each request of a line end: request `at` carries those before place
/// `ends[at]`.
#[must_use]
pub fn request_ends(line: &[ReplayItem]) -> Vec<usize> {
    let requests = line.iter().enumerate().filter(|(_, item)| item.item.request);
    requests.map(|(place, _)| place).collect()
}

/// Every message of request `at`, the first of which is 0, with what became of it: those of the
/// transcript in its order, and each that was added before the message that it goes before. `line` is
/// what was replayed, up to the request; `details` are those of the replay.
///
/// The replay keeps edits only, so this takes time with their number and that of the messages.
///
/// # Errors
///
/// What reading a message may give.
pub fn manifest_at(
    line: &[ReplayItem],
    details: &[RequestDetail],
    counter: &Counter,
    at: usize,
) -> Result<Vec<ManifestEntry>> {
    let mut fates = Fates::of(line, counter)?;
    for detail in details.iter().take(at.saturating_add(1)) {
        let forms: HashMap<&EntryId, &Form> =
            detail.forms.iter().map(|form| (&form.entry, form)).collect();
        for edit in &detail.edits {
            fates.take(edit, forms.get(&edit.entry).copied());
        }
    }
    Ok(fates.in_order(line.len()))
}

/// What became of each message so far.
struct Fates {
    entries: Vec<ManifestEntry>,
    index: HashMap<EntryId, usize>,
    /// Of those that were added, in which order: what each goes before.
    added: Vec<Option<EntryId>>,
}

impl Fates {
    fn of(line: &[ReplayItem], counter: &Counter) -> Result<Self> {
        let mut entries = Vec::with_capacity(line.len());
        let mut index = HashMap::with_capacity(line.len());
        for ReplayItem { item, .. } in line {
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

    fn take(&mut self, edit: &Edit, form: Option<&Form>) {
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
            // What was added stays so in another form too.
            _ if entry.state == NodeState::Inserted => NodeState::Inserted,
            _ => NodeState::Replaced,
        };
        entry.tokens = edit.after;
        entry.layer = Some(edit.layer.clone());
        entry.reason = Some(edit.reason.clone());
    }

    fn add(&mut self, edit: &Edit, form: Option<&Form>) -> usize {
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

    /// The entries with those that were added, which stand behind the `said` ones, at their places.
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
