//! Converting another program's transcript and its overlay, with every entry, to a ctx session.

use std::collections::HashMap;
use std::io::Write;

use ctx_core::{EntryId, Result};
use ctx_dialect::json::{Object, ObjectWriter, quote};

use crate::entry::{Audience, Detail, EntryKind, TreeEntry};
use crate::formats::Omissions;
use crate::schema::{
    CTX_FIELD, CTX_MARK, Edits, PI_VERSION, is_ctx_header, iso_or_epoch, write_json_line,
};
use crate::transcript::{Transcript, read_projections};

impl Transcript {
    /// Writes a pi session as a ctx session: all branches, labels and entries of any type, with the
    /// overlay's entries at their positions, so that every branch reads the same.
    pub(crate) fn to_session<W: Write + ?Sized>(
        &self,
        out: &mut W,
        omissions: &mut Omissions,
    ) -> Result<()> {
        write_json_line(out, &self.session_header(omissions))?;
        let migrate = self.header.version.is_none_or(|version| version < PI_VERSION);
        // Children of omitted entries become children of the omitted entry's parent.
        let mut instead: HashMap<usize, Option<usize>> = HashMap::new();
        let mut compactions = 0;
        let mut last = None;
        for (index, entry) in self.entries.iter().enumerate() {
            let parent = entry.parent();
            let parent = parent.and_then(|p| instead.get(&p).copied().unwrap_or(Some(p)));
            if has_no_effect(entry, &instead) {
                compactions += usize::from(entry.kind == EntryKind::Compaction);
                instead.insert(index, parent);
                continue;
            }
            write_json_line(out, &self.pi_line(entry, parent, migrate)?)?;
            last = Some(entry);
        }
        omissions.count(compactions, "compaction", "from before the file was rewritten");
        let leaf = self.leaf_index();
        let leaf = leaf.and_then(|leaf| instead.get(&leaf).copied().unwrap_or(Some(leaf)));
        self.write_leaf_entry(leaf, last, out)
    }

    /// Writes an entry that moves the leaf to the entry at `leaf`, unless that is the leaf already.
    pub(crate) fn write_leaf_entry<W: Write + ?Sized>(
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
        let entry = ObjectWriter::new()
            .text("type", EntryKind::Leaf.name())
            .text("id", &id)
            .raw("parentId", named(last.map(|last| &last.id)))
            .text("timestamp", &iso_or_epoch(last.and_then(|last| last.timestamp)))
            .raw("targetId", named(wanted));
        write_json_line(out, &entry.end())
    }

    /// Notes that projections in the overlay are not copied, because the new session has not sent a
    /// request.
    pub(crate) fn note_overlay_projections(&self, omissions: &mut Omissions) {
        let overlay = self.overlay_entries.as_ref().and_then(|overlay| overlay.source.path());
        let kept = overlay.and_then(|path| read_projections(path).ok()).unwrap_or_default();
        let of_requests = kept.iter().filter(|kept| kept.by.is_none());
        let projections = of_requests.map(|kept| kept.projections.len()).sum();
        omissions.count(projections, "projection", "stored in the overlay");
    }

    /// Returns a header with the mark that lets ctx append: the transcript's own if possible,
    /// otherwise a new one.
    pub(crate) fn session_header(&self, omissions: &mut Omissions) -> String {
        let marked = |header: &str| {
            let object = Object::parse(header).ok()?;
            let mut edits = Edits::new(header, &object);
            if object.integer("version") != i64::try_from(PI_VERSION).ok() {
                edits.set("version", PI_VERSION.to_string());
            }
            edits.set(CTX_FIELD, CTX_MARK.to_string());
            Some(edits.apply()).filter(|header| is_ctx_header(header))
        };
        let fresh = || {
            let header = self.fresh_header();
            marked(&header).unwrap_or(header)
        };
        if self.header.raw.is_none() || !self.format.is_pi() {
            return fresh();
        }
        marked(&self.pi_header()).unwrap_or_else(|| {
            omissions.add("header fields that ctx could not read back".to_owned());
            fresh()
        })
    }
}

/// Whether an entry can never have an effect: a forgotten message; in the overlay, a compaction of
/// a file that was rewritten since, and its undo.
fn has_no_effect(entry: &TreeEntry, instead: &HashMap<usize, Option<usize>>) -> bool {
    let forgotten = entry.audience == Audience::Nobody && !entry.is_compaction();
    let outdated = entry.overlay
        && match entry.detail.as_deref() {
            None => entry.kind == EntryKind::Compaction,
            Some(Detail::Undo { target }) => {
                target.is_none_or(|target| instead.contains_key(&(target as usize)))
            }
            Some(_) => false,
        };
    forgotten || outdated
}
