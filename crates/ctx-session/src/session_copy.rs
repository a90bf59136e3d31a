//! A session of ours made of another program's: every entry, and what ctx keeps beside the file.

use std::collections::HashMap;
use std::io::Write;

use ctx_core::{EntryId, Result};
use ctx_dialect::json::{Fresh, Object, quote};

use crate::compactions::MARK;
use crate::entry::{Audience, Detail, EntryKind, TreeEntry};
use crate::left_out::LeftOut;
use crate::log::{OURS, PI_VERSION, is_header_of_ours};
use crate::projections::read_kept;
use crate::repair::{Edits, iso, line};
use crate::transcript::Transcript;

impl Transcript {
    /// Writes a pi session as one of ours: all branches, labels and entries of any type, with what
    /// an overlay adds in the places where it counts, so that every branch reads as it does here.
    pub(crate) fn to_session<W: Write + ?Sized>(
        &self,
        out: &mut W,
        left_out: &mut LeftOut,
    ) -> Result<()> {
        line(out, &self.session_header(left_out))?;
        let migrate = self.header().version.is_none_or(|version| version < PI_VERSION);
        // What hung on entries that are left out hangs on what those hung on.
        let mut instead: HashMap<usize, Option<usize>> = HashMap::new();
        let mut compactions = 0;
        let mut last = None;
        for (index, entry) in self.entries.iter().enumerate() {
            let parent = entry.parent();
            let parent = parent.and_then(|p| instead.get(&p).copied().unwrap_or(Some(p)));
            if means_nothing(entry, &instead) {
                compactions += usize::from(entry.kind == EntryKind::Compaction);
                instead.insert(index, parent);
                continue;
            }
            line(out, &self.pi_line(entry, parent, migrate)?)?;
            last = Some(entry);
        }
        left_out.count(compactions, "compaction", "of what the file held before it was rewritten");
        let leaf = self.leaf_index();
        let leaf = leaf.and_then(|leaf| instead.get(&leaf).copied().unwrap_or(Some(leaf)));
        self.settle_leaf(leaf, last, out)
    }

    /// Moves the leaf to the entry at `leaf`, if the last entry does not leave it there.
    pub(crate) fn settle_leaf<W: Write + ?Sized>(
        &self,
        leaf: Option<usize>,
        last: Option<&TreeEntry>,
        out: &mut W,
    ) -> Result<()> {
        let id = |index: usize| self.entries.get(index).map(|entry| &entry.id);
        let wanted = leaf.and_then(id);
        let found = match last.map(|last| (last, last.detail.as_deref())) {
            Some((_, Some(Detail::Leaf { target }))) => target.and_then(|at| id(at as usize)),
            Some((last, _)) => Some(&last.id),
            None => None,
        };
        if found == wanted {
            return Ok(());
        }
        let numbers = self.entries.len()..;
        let mut ids = numbers.map(|n| format!("{n:08x}"));
        let id = ids.find(|id| self.index_of(id).is_none()).unwrap_or_default();
        let named = |id: Option<&EntryId>| id.map_or("null".to_owned(), |id| quote(id));
        let entry = Fresh::new()
            .text("type", EntryKind::Leaf.name())
            .text("id", &id)
            .raw("parentId", named(last.map(|last| &last.id)))
            .text("timestamp", &iso(last.and_then(TreeEntry::timestamp)))
            .raw("targetId", named(wanted));
        line(out, &entry.end())
    }

    /// Says that forms kept beside the file do not come along: a request made of the new session is
    /// the first of it.
    pub(crate) fn forms_left(&self, left_out: &mut LeftOut) {
        let overlay = self.annex.as_ref().and_then(|annex| annex.source.path());
        let kept = overlay.and_then(|path| read_kept(path).ok()).unwrap_or_default();
        let of_requests = kept.iter().filter(|kept| kept.by.is_none());
        let forms = of_requests.map(|kept| kept.projections.len()).sum();
        left_out.count(forms, "form", "in which messages were sent, kept beside the file");
    }

    /// The header with the mark that lets ctx append; a fresh one where the transcript has none
    /// that could bear it.
    pub(crate) fn session_header(&self, left_out: &mut LeftOut) -> String {
        let marked = |header: &str| {
            let object = Object::parse(header).ok()?;
            let mut edits = Edits::new(header, &object);
            if object.integer("version") != i64::try_from(PI_VERSION).ok() {
                edits.set("version", PI_VERSION.to_string());
            }
            edits.set(MARK, OURS.to_string());
            Some(edits.apply()).filter(|header| is_header_of_ours(header))
        };
        let fresh = || {
            let header = self.fresh_header();
            marked(&header).unwrap_or(header)
        };
        if self.header().raw.is_none() || !self.format().is_pi() {
            return fresh();
        }
        marked(&self.pi_header()).unwrap_or_else(|| {
            left_out.say("fields of a header that ctx could not read again".to_owned());
            fresh()
        })
    }
}

/// Whether an entry says nothing that is in force or may come to be: what was forgotten; and beside
/// the file the compaction of one that was rewritten since, and what undoes it.
fn means_nothing(entry: &TreeEntry, instead: &HashMap<usize, Option<usize>>) -> bool {
    let forgotten = entry.audience == Audience::Nobody && !entry.is_compaction();
    let outdated = entry.is_overlay()
        && match entry.detail.as_deref() {
            None => entry.kind == EntryKind::Compaction,
            Some(Detail::Undo { target }) => {
                target.is_none_or(|target| instead.contains_key(&(target as usize)))
            }
            Some(_) => false,
        };
    forgotten || outdated
}
