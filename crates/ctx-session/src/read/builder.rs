//! The tree under construction while a transcript is read.

use ctx_core::text::Slice;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use ctx_core::{EntryId, Message, RawJson, Result};
use ctx_dialect::json::Object;

use crate::entry::{EntryKind, MessageEncoding, TreeEntry, parse_message};
use crate::read::links::Unlinked;
use crate::read::{ProblemKind, Problems, TranscriptHeader};
use crate::source::{Source, SourcePosition, Span};

/// The parent of an entry.
#[derive(Clone, Debug)]
pub(crate) enum Parent<'a> {
    /// The previous entry.
    Previous,
    /// None.
    Root,
    /// The entry with this id.
    Id(Cow<'a, str>),
    /// An entry that was found already.
    Index(u32),
}

/// An entry before it is added to the tree.
#[derive(Debug)]
pub(crate) struct Draft<'a> {
    pub(crate) id: Option<Cow<'a, str>>,
    pub(crate) parent: Parent<'a>,
    pub(crate) entry: TreeEntry,
}

impl Draft<'_> {
    pub(crate) fn new(kind: EntryKind) -> Self {
        Self { id: None, parent: Parent::Previous, entry: TreeEntry::new(kind) }
    }
}

/// The entries, header and problems read so far.
#[derive(Default)]
pub(crate) struct Builder {
    pub(crate) source: Arc<Source>,
    pub(crate) entries: Vec<TreeEntry>,
    /// The newest entry recorded under an id.
    pub(crate) index: HashMap<EntryId, u32>,
    pub(crate) header: TranscriptHeader,
    pub(crate) problems: Problems,
    pub(crate) labels: BTreeMap<EntryId, String>,
    pub(crate) name: Option<String>,
    pub(crate) system: Option<String>,
    pub(crate) tools: Option<String>,
    /// The fields of a request body other than its messages.
    pub(crate) body: Vec<(String, RawJson)>,
    pub(crate) model: Option<(String, String)>,
    /// The default parent of the next entry: the newest entry of the main line.
    pub(crate) tip: Option<u32>,
    /// Byte ranges that cannot be read and belong to no entry.
    pub(crate) lost: Vec<Span>,
    /// The common parent for children of an entry that is missing.
    bridges: HashMap<EntryId, Option<u32>>,
    /// Entries whose parent was missing when they were read.
    pub(crate) unlinked: Vec<Unlinked>,
    /// The context window in tokens, as the agent's provider reported it.
    pub(crate) window: Option<u32>,
    /// The size at which the agent last compacted automatically.
    pub(crate) auto_compacted_at: Option<u32>,
}

impl Builder {
    pub(crate) fn new(source: &Arc<Source>) -> Self {
        Self { source: source.clone(), ..Self::default() }
    }

    /// Returns the newest entry recorded under `id`.
    pub(crate) fn find(&self, id: &str) -> Option<u32> {
        self.index.get(id).copied()
    }

    /// Adds an entry and returns its index; `None` if it is a duplicate.
    pub(crate) fn push(
        &mut self,
        draft: Draft<'_>,
        place: SourcePosition,
        text: &str,
    ) -> Result<Option<u32>> {
        // More than four billion entries do not fit in memory.
        let Ok(index) = u32::try_from(self.entries.len()) else { return Ok(None) };
        let Some((id, recorded)) = self.resolve_id(&draft, place, text)? else { return Ok(None) };
        let parent = self.resolve_parent(&draft, index, place.line);
        if let Some(recorded) = recorded {
            self.index.insert(recorded, index);
        }
        self.index.insert(id.clone(), index);
        self.entries.push(TreeEntry { id, parent, place, ..draft.entry });
        self.tip = Some(index);
        Ok(Some(index))
    }

    /// Returns the entry's id, and its recorded id if that was already in use. `None` for a line
    /// that occurs twice in the file.
    fn resolve_id(
        &mut self,
        draft: &Draft<'_>,
        place: SourcePosition,
        text: &str,
    ) -> Result<Option<(EntryId, Option<EntryId>)>> {
        let Some(id) = draft.id.as_deref() else { return Ok(Some((self.fresh_id(), None))) };
        let Some(&earlier) = self.index.get(id) else { return Ok(Some((id.into(), None))) };
        if self.is_same(earlier, draft, place, text)? {
            let first = self.entries.get(earlier as usize).map_or(0, |e| e.place.line);
            self.problems.note(
                place.line,
                ProblemKind::DuplicateLine,
                format!("repeats line {first} (id {}): skipped", shorten_id(id)),
            );
            return Ok(None);
        }
        let fresh = self.fresh_id();
        self.problems.note(
            place.line,
            ProblemKind::DuplicateId,
            format!("id {} is used by another entry: renamed to {fresh}", shorten_id(id)),
        );
        Ok(Some((fresh, Some(id.into()))))
    }

    /// Whether the entry at `earlier` equals the new one: the same bytes, or the same message of
    /// the same kind.
    fn is_same(
        &self,
        earlier: u32,
        draft: &Draft<'_>,
        place: SourcePosition,
        text: &str,
    ) -> Result<bool> {
        let Some(entry) = self.entries.get(earlier as usize) else { return Ok(false) };
        if entry.place.span.len == place.span.len && entry.place.fingerprint == place.fingerprint {
            return Ok(true);
        }
        let size = |(from, to): (u32, u32)| u64::from(to.saturating_sub(from));
        let (old, new) = (size(entry.part), size(draft.entry.part));
        // Each repetition reads the earlier entry again, so that entry must not be much longer.
        if draft.entry.encoding == MessageEncoding::Nothing
            || entry.encoding != draft.entry.encoding
            || new == u64::from(draft.entry.part.1)
            || old > new * 2 + 1024
        {
            return Ok(false);
        }
        let text_of_part =
            |text: &str, (from, to): (u32, u32)| text.slice(from as usize..to as usize).to_owned();
        let old = text_of_part(&self.source.text(entry.place)?, entry.part);
        let new = text_of_part(text, draft.entry.part);
        // The same message, possibly with its fields in a different order.
        let same = |old: Result<Message>, new: Result<Message>| match (old, new) {
            (Ok(old), Ok(new)) => old == new,
            _ => false,
        };
        Ok(old == new
            || same(
                parse_message(draft.entry.encoding, &old),
                parse_message(draft.entry.encoding, &new),
            ))
    }

    /// Returns the ordinal of the next entry or, if it is in use, a higher unused number.
    fn fresh_id(&self) -> EntryId {
        let mut n = self.entries.len() as u64;
        loop {
            let id = format!("{n:08x}");
            if !self.index.contains_key(id.as_str()) {
                return id.into();
            }
            // If the file's ids count up, single steps would take quadratic time; no real file uses
            // ids 2^40 higher.
            n += 1 << 40;
        }
    }

    fn resolve_parent(&mut self, draft: &Draft<'_>, index: u32, line: u64) -> Option<u32> {
        match &draft.parent {
            Parent::Root => None,
            Parent::Previous => self.tip,
            Parent::Index(parent) => Some(*parent),
            Parent::Id(id) => {
                if let Some(parent) = self.find(id) {
                    return Some(parent);
                }
                let before = index.checked_sub(1);
                // An entry that names itself as parent has no siblings.
                let bridge = match draft.id.as_deref() == Some(id.as_ref()) {
                    true => before,
                    false => *self.bridges.entry(id.as_ref().into()).or_insert(before),
                };
                let text = match bridge.and_then(|i| self.entries.get(i as usize)) {
                    Some(to) => {
                        format!(
                            "parent {} is not in the file: attached to {}",
                            shorten_id(id),
                            shorten_id(&to.id)
                        )
                    }
                    None => format!("parent {} is not in the file: read as a root", shorten_id(id)),
                };
                let note = self.problems.note(line, ProblemKind::BrokenParent, text);
                self.unlinked.push(Unlinked { child: index, parent: id.as_ref().into(), note });
                bridge
            }
        }
    }

    /// Records where to attach the children of an entry whose line cannot be read: to its parent,
    /// if the line still names it, otherwise to the entry before it.
    pub(crate) fn bridge_unreadable(&mut self, line: &str) {
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
        let id = entry.id.clone();
        match label.filter(|label| !label.is_empty()) {
            Some(label) => self.labels.insert(id, label),
            None => self.labels.remove(&id),
        };
    }

    /// Records bytes that cannot be read. Adjacent ranges are merged.
    pub(crate) fn add_unreadable(&mut self, span: Span) {
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

/// Returns the first id in a line whose beginning is damaged.
fn quoted_id(line: &str) -> Option<Cow<'_, str>> {
    let (_, rest) = line.split_once("\"id\":\"").or_else(|| line.split_once("\"uuid\":\""))?;
    rest.split_once('"').map(|(id, _)| Cow::Borrowed(id))
}

/// Shortens an id for a message to the user.
pub(crate) fn shorten_id(id: &str) -> &str {
    ctx_core::text::head_chars(id, 64)
}
