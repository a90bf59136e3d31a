//! What an engine is told of a view: at first everything, then what is new.

use std::collections::{HashMap, HashSet};

use ctx_core::{Action, ContextView, EntryId, NodeState, Place, ViewId};
use ctx_engine_sdk::protocol::{Contract, Row, Update};

use super::form;

/// Fewer rows are told again one by one, however short the session is.
const LEAST_RESET: usize = 32;

/// What was told of a row that may change without an edit.
#[derive(Clone, Copy, Debug)]
struct Mark {
    place: Place,
    group: u32,
    keep: bool,
}

/// What was told of one view. The next [`Told::update`] holds what is new since: it costs what was
/// added and edited, not the session.
#[derive(Debug)]
pub struct Told {
    view: ViewId,
    edits: usize,
    rows: usize,
    marks: HashMap<EntryId, Mark>,
    /// Rows that must stay for now: the newest message of the user, the tool call in progress.
    kept_for_now: Vec<EntryId>,
}

/// How an engine is told.
#[derive(Clone, Copy, Debug)]
pub struct Telling<'a> {
    /// How it wants to be spoken to.
    pub contract: &'a Contract,
    /// Messages it has already: their rows come without.
    pub ingested: &'a HashSet<EntryId>,
}

impl Told {
    /// Tells all of a view.
    #[must_use]
    pub fn all(view: &ContextView, telling: Telling<'_>) -> (Self, Update) {
        let mut told = Self {
            view: view.id().clone(),
            edits: view.edits().len(),
            rows: 0,
            marks: HashMap::with_capacity(view.len()),
            kept_for_now: Vec::new(),
        };
        let mut update = Update { reset: true, ..Update::default() };
        told.add(view, 0, telling, &mut update);
        update.rows = told.rows;
        (told, update)
    }

    /// Tells what is new in a view: all of it, where what is known cannot be built on.
    #[must_use]
    pub fn update(self, view: &ContextView, telling: Telling<'_>) -> (Self, Update) {
        let follows = self.view == *view.id() && self.edits <= view.edits().len();
        let changes = follows.then(|| self.follow(view, telling)).flatten();
        changes.unwrap_or_else(|| Self::all(view, telling))
    }

    /// Where a row stands.
    #[must_use]
    pub fn position(&self, view: &ContextView, id: &str) -> Option<usize> {
        let at = view.position(self.marks.get(id)?.place)?;
        view.node(at).is_live().then_some(at)
    }

    /// `None` where it is simpler to tell everything again.
    fn follow(mut self, view: &ContextView, telling: Telling<'_>) -> Option<(Self, Update)> {
        let edits = Edits::since(view, self.edits);
        let from = self.tail(view, edits.displaced.clone())?;
        let mut update = Update::default();
        let tail = view.nodes()[from..].iter().map(|node| node.entry().id());
        for id in edits.dropped.iter().chain(&edits.displaced).copied().chain(tail) {
            let Some(mark) = self.marks.get(id) else { continue };
            let at = view.position(mark.place).filter(|&at| view.node(at).is_live());
            if at.is_none_or(|at| at >= from) {
                self.marks.remove(id);
                self.rows = self.rows.saturating_sub(1);
                update.gone.push(id.to_string());
            }
        }
        for id in self.may_have_changed(view, from, &edits) {
            let is_new_form = edits.replaced.contains(&id);
            self.look_again(view, &id, is_new_form, telling, &mut update);
        }
        self.add(view, from, telling, &mut update);
        self.edits = view.edits().len();
        update.rows = self.rows;
        Some((self, update))
    }

    /// Where the part begins that is told anew: what was appended, and everything from the first
    /// row on that came in between or was moved. `None` where that is most of the view.
    fn tail(&self, view: &ContextView, mut displaced: HashSet<&EntryId>) -> Option<usize> {
        let mut from = view.len();
        let mut again = 0;
        while let Some(at) = from.checked_sub(1) {
            let node = view.node(at);
            let id = node.entry().id();
            let is_known = self.marks.get(id).is_some_and(|mark| mark.place == node.place());
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

    /// Rows before the tail that may be told of in another way than they were.
    fn may_have_changed(
        &mut self,
        view: &ContextView,
        from: usize,
        edits: &Edits<'_>,
    ) -> Vec<EntryId> {
        let mut ids = std::mem::take(&mut self.kept_for_now);
        ids.extend(edits.replaced.iter().map(|&id| id.clone()));
        // Who is pinned keeps its group. And results join the groups of earlier rows, and bring
        // groups together.
        let pinned = edits.pinned.iter().filter_map(|id| self.position(view, id));
        let mut groups = HashSet::new();
        for at in pinned.chain(from..view.len()) {
            if view.node(at).is_live() && groups.insert(view.node(at).group()) {
                let earlier = view.group_at(at).into_iter().filter(|&at| at < from);
                ids.extend(earlier.map(|at| view.node(at).entry().id().clone()));
            }
        }
        let mut seen = HashSet::new();
        ids.retain(|id| seen.insert(id.clone()));
        ids
    }

    fn look_again(
        &mut self,
        view: &ContextView,
        id: &EntryId,
        is_new_form: bool,
        telling: Telling<'_>,
        update: &mut Update,
    ) {
        let Some(at) = self.position(view, id) else { return };
        let mark = self.mark(view, at);
        let Some(known) = self.marks.insert(id.clone(), mark) else { return };
        if is_new_form || known.keep != mark.keep || known.group != mark.group {
            update.changed.push(row(view, at, is_new_form && telling.contract.contents));
        }
    }

    /// Tells of the rows from a position on, at the end.
    fn add(&mut self, view: &ContextView, from: usize, telling: Telling<'_>, update: &mut Update) {
        for at in from..view.len() {
            let node = view.node(at);
            if !node.is_live() {
                continue;
            }
            let id = node.entry().id();
            let known = telling.ingested.contains(id) && node.state() == NodeState::Kept;
            update.added.push(row(view, at, telling.contract.contents && !known));
            let mark = self.mark(view, at);
            self.marks.insert(id.clone(), mark);
            self.rows += 1;
        }
    }

    fn mark(&mut self, view: &ContextView, at: usize) -> Mark {
        let node = view.node(at);
        let keep = view.is_protected(at);
        if keep && !node.is_pinned() {
            self.kept_for_now.push(node.entry().id().clone());
        }
        Mark { place: node.place(), group: node.group(), keep }
    }
}

/// What was edited since, by entry. What was edited and then dropped counts as dropped.
#[derive(Default)]
struct Edits<'v> {
    dropped: HashSet<&'v EntryId>,
    replaced: HashSet<&'v EntryId>,
    pinned: HashSet<&'v EntryId>,
    /// Live rows that came in between, or moved.
    displaced: HashSet<&'v EntryId>,
}

impl<'v> Edits<'v> {
    fn since(view: &'v ContextView, edits: usize) -> Self {
        let mut since = Self::default();
        for edit in view.edits().get(edits..).unwrap_or_default() {
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

fn row(view: &ContextView, at: usize, with_message: bool) -> Row {
    let node = view.node(at);
    // A message that cannot be read any more is told of without.
    let message = with_message.then(|| node.message().ok()).flatten();
    Row {
        id: node.entry().id().to_string(),
        role: node.role().name().to_owned(),
        tokens: node.tokens().get(),
        group: u64::from(node.group()),
        keep: view.is_protected(at),
        inserted: node.state() == NodeState::Inserted,
        message: message.and_then(|message| form::json(&message)),
    }
}
