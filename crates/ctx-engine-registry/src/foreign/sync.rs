//! What is sent to an engine about a view: at first everything, then the changes.

use ctx_core::text::Slice;
use std::collections::{HashMap, HashSet};

use ctx_core::{Action, ContextView, EntryId, NodeHandle, NodeState, ViewId};
use ctx_engine_sdk::protocol::{Contract, Row, Update};

use super::message;

/// Up to this number of rows, rows are sent again without a reset, even in a short session.
const LEAST_RESET: usize = 32;

/// The sent properties of a row that may change without an edit.
#[derive(Clone, Copy, Debug)]
struct SentRow {
    handle: NodeHandle,
    group: u32,
    keep: bool,
}

/// The part of a view that was sent. The next [`ViewSync::update`] contains the changes since then:
/// its cost depends on the additions and edits, not on the length of the session.
#[derive(Debug)]
pub struct ViewSync {
    view: ViewId,
    edits: usize,
    rows: usize,
    sent: HashMap<EntryId, SentRow>,
    /// Rows that are protected for now: the user's newest message, the running tool call.
    kept_for_now: Vec<EntryId>,
}

/// How updates are sent to an engine.
#[derive(Clone, Copy, Debug)]
pub struct SyncOptions<'a> {
    /// What the engine expects.
    pub contract: &'a Contract,
    /// Messages it already has: their rows are sent without them.
    pub ingested: &'a HashSet<EntryId>,
}

impl ViewSync {
    /// Returns an update with the whole view.
    pub fn all(view: &ContextView, options: SyncOptions<'_>) -> (Self, Update) {
        let mut sync = Self {
            view: view.id().clone(),
            edits: view.edits().len(),
            rows: 0,
            sent: HashMap::with_capacity(view.len()),
            kept_for_now: Vec::new(),
        };
        let mut update = Update { reset: true, ..Update::default() };
        sync.add(view, 0, options, &mut update);
        update.rows = sync.rows;
        (sync, update)
    }

    /// Returns an update with the changes of a view; with the whole view, if it does not continue
    /// the known one.
    pub fn update(self, view: &ContextView, options: SyncOptions<'_>) -> (Self, Update) {
        let follows = self.view == *view.id() && self.edits <= view.edits().len();
        let changes = follows.then(|| self.follow(view, options)).flatten();
        changes.unwrap_or_else(|| Self::all(view, options))
    }

    /// Returns the position of a row.
    pub fn position(&self, view: &ContextView, id: &str) -> Option<usize> {
        let at = view.position(self.sent.get(id)?.handle)?;
        view.node(at).is_live().then_some(at)
    }

    /// Returns an update with the changes; `None` if sending everything is simpler.
    fn follow(mut self, view: &ContextView, options: SyncOptions<'_>) -> Option<(Self, Update)> {
        let edits = Edits::since(view, self.edits);
        let from = self.tail(view, edits.displaced.clone())?;
        let mut update = Update::default();
        let tail = view.nodes()[from..].iter().map(|node| node.entry().id());
        for id in edits.dropped.iter().chain(&edits.displaced).copied().chain(tail) {
            let Some(row_state) = self.sent.get(id) else { continue };
            let at = view.position(row_state.handle).filter(|&at| view.node(at).is_live());
            if at.is_none_or(|at| at >= from) {
                self.sent.remove(id);
                self.rows = self.rows.saturating_sub(1);
                update.gone.push(id.to_string());
            }
        }
        for id in self.may_have_changed(view, from, &edits) {
            let is_new_form = edits.replaced.contains(&id);
            self.update_row(view, &id, is_new_form, options, &mut update);
        }
        self.add(view, from, options, &mut update);
        self.edits = view.edits().len();
        update.rows = self.rows;
        Some((self, update))
    }

    /// Returns the start of the tail to send again: appended rows, and everything from the first
    /// row that was inserted in between or moved. `None` if that is most of the view.
    fn tail(&self, view: &ContextView, mut displaced: HashSet<&EntryId>) -> Option<usize> {
        let mut from = view.len();
        let mut again = 0;
        while let Some(at) = from.checked_sub(1) {
            let node = view.node(at);
            let id = node.entry().id();
            let is_known =
                self.sent.get(id).is_some_and(|row_state| row_state.handle == node.handle());
            if node.is_live() {
                let is_displaced = !is_known && displaced.remove(id);
                if is_known && displaced.is_empty() {
                    break;
                }
                again += usize::from(is_known || is_displaced);
            }
            from = at;
        }
        let is_most = again > LEAST_RESET && again > self.rows / 2;
        (displaced.is_empty() && !is_most).then_some(from)
    }

    /// Returns the rows before the tail whose sent properties may have changed.
    fn may_have_changed(
        &mut self,
        view: &ContextView,
        from: usize,
        edits: &Edits<'_>,
    ) -> Vec<EntryId> {
        let mut ids = std::mem::take(&mut self.kept_for_now);
        ids.extend(edits.replaced.iter().map(|&id| id.clone()));
        // Pinning a row protects its group. Results join the groups of earlier rows, and may merge
        // groups.
        let pinned = edits.pinned.iter().filter_map(|id| self.position(view, id));
        let mut groups = HashSet::new();
        for at in pinned.chain(from..view.len()) {
            if view.node(at).is_live() && groups.insert(view.node(at).group) {
                let earlier = view.group_at(at).into_iter().filter(|&at| at < from);
                ids.extend(earlier.map(|at| view.node(at).entry().id().clone()));
            }
        }
        let mut seen = HashSet::new();
        ids.retain(|id| seen.insert(id.clone()));
        ids
    }

    fn update_row(
        &mut self,
        view: &ContextView,
        id: &EntryId,
        is_new_form: bool,
        options: SyncOptions<'_>,
        update: &mut Update,
    ) {
        let Some(at) = self.position(view, id) else { return };
        let row_state = self.row_state(view, at);
        let Some(known) = self.sent.insert(id.clone(), row_state) else { return };
        if is_new_form || known.keep != row_state.keep || known.group != row_state.group {
            update.changed.push(row(view, at, is_new_form, options.contract));
        }
    }

    /// Adds the rows from a position on to the end of the update.
    fn add(
        &mut self,
        view: &ContextView,
        from: usize,
        options: SyncOptions<'_>,
        update: &mut Update,
    ) {
        for at in from..view.len() {
            let node = view.node(at);
            if !node.is_live() {
                continue;
            }
            let id = node.entry().id();
            let known = options.ingested.contains(id) && node.state() == NodeState::Kept;
            update.added.push(row(view, at, !known, options.contract));
            let row_state = self.row_state(view, at);
            self.sent.insert(id.clone(), row_state);
            self.rows += 1;
        }
    }

    fn row_state(&mut self, view: &ContextView, at: usize) -> SentRow {
        let node = view.node(at);
        let keep = view.is_protected(at);
        if keep && !node.pinned {
            self.kept_for_now.push(node.entry().id().clone());
        }
        SentRow { handle: node.handle(), group: node.group, keep }
    }
}

/// The edits since the last update, by entry. A row that was edited and then dropped counts as
/// dropped.
#[derive(Default)]
struct Edits<'v> {
    dropped: HashSet<&'v EntryId>,
    replaced: HashSet<&'v EntryId>,
    pinned: HashSet<&'v EntryId>,
    /// Live rows that were inserted in between, or moved.
    displaced: HashSet<&'v EntryId>,
}

impl<'v> Edits<'v> {
    fn since(view: &'v ContextView, edits: usize) -> Self {
        let mut since = Self::default();
        for edit in view.edits().slice(edits..) {
            match edit.action {
                Action::Insert | Action::Move => since.displaced.insert(&edit.entry),
                Action::Replace => since.replaced.insert(&edit.entry),
                Action::Pin => since.pinned.insert(&edit.entry),
                Action::Drop => {
                    since.displaced.remove(&edit.entry);
                    since.dropped.insert(&edit.entry)
                }
            };
        }
        since
    }
}

fn row(view: &ContextView, at: usize, with_message: bool, contract: &Contract) -> Row {
    let node = view.node(at);
    // A message that can no longer be read is omitted.
    let message = (with_message && contract.contents).then(|| node.message().ok()).flatten();
    Row {
        id: node.entry().id().to_string(),
        role: node.role().name().to_owned(),
        tokens: node.tokens().get(),
        group: u64::from(node.group),
        keep: view.is_protected(at),
        inserted: node.state() == NodeState::Inserted,
        message: message.and_then(|message| message::encoded(&message, contract.encoding())),
    }
}
