//! The tree as it grows while a transcript is read.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::sync::Arc;

use ctx_core::{EntryId, Message, RawJson, Result, Role, Timestamp};
use ctx_dialect::json::Object;

use crate::entry::{Audience, Detail, EntryKind, TreeEntry};
use crate::header::Header;
use crate::links::Unlinked;
use crate::load::{Recipe, parse, text_of};
use crate::problem::{ProblemKind, Problems};
use crate::source::{Source, Span};

/// Where an entry hangs.
#[derive(Clone, Debug)]
pub(crate) enum Parent<'a> {
    /// On the entry before it.
    Previous,
    /// On nothing.
    Root,
    /// On the entry of that id.
    Id(Cow<'a, str>),
    /// On an entry that was found already.
    Index(u32),
}

/// What is known of an entry before it has its place.
#[derive(Debug)]
pub(crate) struct Draft<'a> {
    pub(crate) id: Option<Cow<'a, str>>,
    pub(crate) parent: Parent<'a>,
    pub(crate) kind: EntryKind,
    pub(crate) role: Option<Role>,
    pub(crate) timestamp: Option<Timestamp>,
    pub(crate) part: (u32, u32),
    pub(crate) recipe: Recipe,
    pub(crate) head: Option<u32>,
    pub(crate) audience: Audience,
    pub(crate) detail: Option<Detail>,
}

impl Draft<'_> {
    pub(crate) fn new(kind: EntryKind) -> Self {
        Self {
            id: None,
            parent: Parent::Previous,
            kind,
            role: None,
            timestamp: None,
            part: (0, 0),
            recipe: Recipe::Nothing,
            head: None,
            audience: Audience::Model,
            detail: None,
        }
    }
}

/// Where an object stands in the source.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) span: Span,
    pub(crate) fingerprint: u64,
    pub(crate) line: u64,
    /// Whether it is only JSON once it was mended.
    pub(crate) mended: bool,
}

/// Entries, header and problems, as far as they were read.
pub(crate) struct Builder {
    pub(crate) source: Arc<Source>,
    pub(crate) entries: Vec<TreeEntry>,
    /// The newest entry recorded under an id.
    pub(crate) index: HashMap<EntryId, u32>,
    pub(crate) header: Header,
    pub(crate) problems: Problems,
    pub(crate) labels: HashMap<EntryId, String>,
    pub(crate) name: Option<String>,
    pub(crate) system: Option<String>,
    pub(crate) tools: Option<String>,
    /// The fields of a request body that hold no messages.
    pub(crate) body: Vec<(String, RawJson)>,
    pub(crate) model: Option<(String, String)>,
    /// Where the next entry hangs if it does not say; the newest entry of the main line.
    pub(crate) tip: Option<u32>,
    /// Bytes that are in no entry because they cannot be read.
    pub(crate) lost: Vec<Span>,
    /// Where the children of an entry hang that is not there: all on the same one.
    bridges: HashMap<EntryId, Option<u32>>,
    /// Entries whose parent was not there when they were read.
    pub(crate) unlinked: Vec<Unlinked>,
    /// What the agent's own provider reported of the model's window, in tokens.
    pub(crate) window: Option<u32>,
    /// The size at which the agent last compacted by itself.
    pub(crate) auto_compacted_at: Option<u32>,
}

impl Builder {
    pub(crate) fn new(source: &Arc<Source>) -> Self {
        Self {
            source: source.clone(),
            entries: Vec::new(),
            index: HashMap::new(),
            header: Header::default(),
            problems: Problems::default(),
            labels: HashMap::new(),
            name: None,
            system: None,
            tools: None,
            body: Vec::new(),
            model: None,
            tip: None,
            lost: Vec::new(),
            bridges: HashMap::new(),
            unlinked: Vec::new(),
            window: None,
            auto_compacted_at: None,
        }
    }

    /// The newest entry recorded under `id`.
    pub(crate) fn find(&self, id: &str) -> Option<u32> {
        self.index.get(id).copied()
    }

    /// Adds an entry and gives its index; `None` if it was there already.
    pub(crate) fn push(
        &mut self,
        draft: Draft<'_>,
        place: Place,
        text: &str,
    ) -> Result<Option<u32>> {
        // More than four billion entries do not fit in any memory this runs on.
        let Ok(index) = u32::try_from(self.entries.len()) else { return Ok(None) };
        let Some((id, recorded)) = self.settle_id(&draft, place, text)? else { return Ok(None) };
        let parent = self.settle_parent(&draft, index, place.line);
        if let Some(recorded) = recorded {
            self.index.insert(recorded, index);
        }
        self.index.insert(id.clone(), index);
        self.entries.push(TreeEntry {
            id,
            parent,
            kind: draft.kind,
            role: draft.role,
            timestamp: draft.timestamp,
            line: place.line,
            span: place.span,
            part: draft.part,
            fingerprint: place.fingerprint,
            mended: place.mended,
            recipe: draft.recipe,
            head: draft.head,
            audience: draft.audience,
            overlay: false,
            detail: draft.detail.map(Box::new),
        });
        self.tip = Some(index);
        Ok(Some(index))
    }

    /// The entry's id, and the one it was recorded under if that was taken. `None` for a line that
    /// stands in the file a second time.
    fn settle_id(
        &mut self,
        draft: &Draft<'_>,
        place: Place,
        text: &str,
    ) -> Result<Option<(EntryId, Option<EntryId>)>> {
        let Some(id) = draft.id.as_deref() else { return Ok(Some((self.fresh_id(), None))) };
        let Some(&earlier) = self.index.get(id) else { return Ok(Some((id.into(), None))) };
        if self.is_same(earlier, draft, place, text)? {
            let first = self.entries.get(earlier as usize).map_or(0, |e| e.line);
            self.problems.note(
                place.line,
                ProblemKind::DuplicateLine,
                format!("repeats line {first} (id {}): left out", short(id)),
            );
            return Ok(None);
        }
        let fresh = self.fresh_id();
        self.problems.note(
            place.line,
            ProblemKind::DuplicateId,
            format!("id {} is taken by another entry: this one is now {fresh}", short(id)),
        );
        Ok(Some((fresh, Some(id.into()))))
    }

    /// Whether the entry at `earlier` is the same as the new one: the same bytes, or the same
    /// message of the same kind.
    fn is_same(&self, earlier: u32, draft: &Draft<'_>, place: Place, text: &str) -> Result<bool> {
        let Some(entry) = self.entries.get(earlier as usize) else { return Ok(false) };
        if entry.span.len == place.span.len && entry.fingerprint == place.fingerprint {
            return Ok(true);
        }
        let size = |(from, to): (u32, u32)| u64::from(to.saturating_sub(from));
        let (old, new) = (size(entry.part), size(draft.part));
        // One that is read anew for each repeated id must not be much longer than its repetition.
        if draft.recipe == Recipe::Nothing
            || entry.recipe != draft.recipe
            || new == u64::from(draft.part.1)
            || old > new * 2 + 1024
        {
            return Ok(false);
        }
        let text_of_part = |text: &str, (from, to): (u32, u32)| {
            text.get(from as usize..to as usize).unwrap_or_default().to_owned()
        };
        let old = text_of_part(&text_of(&self.source, entry)?, entry.part);
        let new = text_of_part(text, draft.part);
        // The same message, be it with its fields in another order.
        let same = |old: Result<Message>, new: Result<Message>| match (old, new) {
            (Ok(old), Ok(new)) => old == new,
            _ => false,
        };
        Ok(old == new || same(parse(draft.recipe, &old), parse(draft.recipe, &new)))
    }

    /// The ordinal of the next entry, or the next number that is not taken.
    fn fresh_id(&self) -> EntryId {
        let mut n = self.entries.len() as u64;
        loop {
            let id = format!("{n:08x}");
            if !self.index.contains_key(id.as_str()) {
                return id.into();
            }
            // Ids that count up from a number in the file would make a walk of single steps
            // quadratic; 40 bits up no real file has any.
            n += 1 << 40;
        }
    }

    fn settle_parent(&mut self, draft: &Draft<'_>, index: u32, line: u64) -> Option<u32> {
        match &draft.parent {
            Parent::Root => None,
            Parent::Previous => self.tip,
            Parent::Index(parent) => Some(*parent),
            Parent::Id(id) => {
                if let Some(parent) = self.find(id) {
                    return Some(parent);
                }
                let before = index.checked_sub(1);
                // One that names itself has no siblings.
                let bridge = match draft.id.as_deref() == Some(id.as_ref()) {
                    true => before,
                    false => *self.bridges.entry(id.as_ref().into()).or_insert(before),
                };
                let text = match bridge.and_then(|i| self.entries.get(i as usize)) {
                    Some(to) => {
                        format!(
                            "parent {} is not in the file: bridged to {}",
                            short(id),
                            short(&to.id)
                        )
                    }
                    None => format!("parent {} is not in the file: read as a root", short(id)),
                };
                let note = self.problems.note(line, ProblemKind::BrokenParent, text);
                self.unlinked.push(Unlinked { child: index, parent: id.as_ref().into(), note });
                bridge
            }
        }
    }

    /// Remembers where the children of an entry hang whose line cannot be read, as far as the line
    /// says whose it was: on its own parent, else on the entry before it.
    pub(crate) fn bridge_lost(&mut self, line: &str) {
        let before = u32::try_from(self.entries.len()).ok().and_then(|n| n.checked_sub(1));
        let object = Object::parse_prefix(line).0;
        let id = object.id("id").or_else(|| object.id("uuid")).or_else(|| quoted_id(line));
        let Some(id) = id.filter(|id| !id.is_empty()) else { return };
        let parent = object.id("parentId").or_else(|| object.id("parentUuid"));
        let to = parent.and_then(|parent| {
            self.find(&parent).or_else(|| self.bridges.get(&*parent).copied().flatten())
        });
        self.bridges.entry(id.as_ref().into()).or_insert(to.or(before));
    }

    /// Sets or clears a label.
    pub(crate) fn label(&mut self, target: &str, label: Option<String>) {
        let Some(entry) = self.find(target).and_then(|i| self.entries.get(i as usize)) else {
            return;
        };
        let slot = self.labels.entry(entry.id.clone());
        match (label.filter(|l| !l.is_empty()), slot) {
            (Some(label), slot) => *slot.or_default() = label,
            (None, Slot::Occupied(slot)) => drop(slot.remove()),
            (None, Slot::Vacant(_)) => {}
        }
    }

    /// Notes bytes that cannot be read. Neighbours become one span.
    pub(crate) fn lose(&mut self, span: Span) {
        if let Some(last) = self.lost.last_mut()
            && span.offset <= last.end() + 1
            && let Ok(len) = u32::try_from(span.end() - last.offset)
        {
            last.len = len;
            return;
        }
        self.lost.push(span);
    }
}

/// The first id in a line of which not even the beginning is whole.
fn quoted_id(line: &str) -> Option<Cow<'_, str>> {
    let (_, rest) = line.split_once("\"id\":\"").or_else(|| line.split_once("\"uuid\":\""))?;
    rest.split_once('"').map(|(id, _)| Cow::Borrowed(id))
}

/// An id as it goes into a message for people.
pub(crate) fn short(id: &str) -> &str {
    id.char_indices().nth(64).map_or(id, |(at, _)| &id[..at])
}
