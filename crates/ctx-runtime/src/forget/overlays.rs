//! Overlays whose transcripts are missing or were replaced.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use ctx_core::{EntryId, Projection, Result};
use ctx_session::{EraseCriteria, Erased, erase_orphaned_overlay, overlay_projections};

use super::targets::Targets;
use super::tool_results::{ResultFate, ResultReferences};
use super::{ForgetRequest, check};
use crate::memory::memory_session;

/// An overlay without its transcript.
#[derive(Clone, Debug)]
pub(super) struct OrphanedOverlay {
    pub(super) path: PathBuf,
    /// The path of its transcript, if the overlay records it.
    pub(super) source: Option<PathBuf>,
}

/// What to erase from such an overlay.
pub(super) struct OverlayTargets {
    pub(super) path: PathBuf,
    /// Whether to erase everything.
    all: bool,
    /// Whether its transcript is the session named in the request.
    is_named: bool,
    entries: HashSet<EntryId>,
    forms: Vec<Projection>,
}

impl OverlayTargets {
    /// Selects what to erase from the overlay. `archived` are the messages that are in no
    /// transcript any more, with their sessions.
    pub(super) fn of(
        what: &ForgetRequest,
        overlay: &OrphanedOverlay,
        archived: &[(String, EntryId)],
    ) -> Result<Self> {
        let path = overlay.path.clone();
        let is_named = overlay.is_named(what);
        // The references of an unreadable overlay are unknown, and protect no file.
        let forms = overlay_projections(&path).unwrap_or_default();
        let source = overlay.source.as_deref();
        let of_it = archived
            .iter()
            .filter(|(session, _)| source.is_some_and(|source| is_of(source, session)));
        let mut entries: HashSet<EntryId> = of_it.map(|(_, entry)| entry.clone()).collect();
        for id in what.entries.iter().filter(|_| is_named) {
            let ids = forms.iter().map(|form| &form.key.entry);
            let begun: BTreeSet<&EntryId> = ids.filter(|of| of.starts_with(id.as_str())).collect();
            check::ambiguous_prefix(id, begun.iter().map(|of| &***of))?;
            let is_one = begun.len() == 1;
            entries.extend(begun.into_iter().filter(|of| is_one || ***of == **id).cloned());
            entries.insert(EntryId::from(id.as_str()));
        }
        Ok(Self { path, all: is_named && what.is_whole(), is_named, entries, forms })
    }

    /// Whether it may refer to the named entry.
    pub(super) fn knows(&self, id: &str) -> bool {
        let text = || ctx_disk::read(&self.path).unwrap_or_default();
        self.is_named && String::from_utf8_lossy(&text()).contains(id)
    }

    /// Records the files that its projections refer to.
    pub(super) fn trace(&self, traces: &mut ResultReferences) {
        if !self.all && self.entries.is_empty() {
            self.forms.iter().for_each(|form| traces.stays_elsewhere(form));
            return;
        }
        let mut traces = traces.in_session();
        for form in &self.forms {
            let goes = self.all || form.entries().any(|id| self.entries.contains(id));
            traces.form(form, if goes { ResultFate::Goes } else { ResultFate::Stays });
        }
    }

    /// Erases the selected parts. With `dry_run` nothing is written.
    pub(super) fn erase(
        &self,
        what: &ForgetRequest,
        plan: &Targets,
        dry_run: bool,
    ) -> Result<Vec<Erased>> {
        let is_out_of_scope = what.session.is_some() && !self.is_named;
        if !self.all && self.entries.is_empty() && (plan.needle.is_none() || is_out_of_scope) {
            return Ok(Vec::new());
        }
        let needle = plan.needle.as_ref().filter(|_| !is_out_of_scope);
        let holds = |text: &str| needle.is_some_and(|needle| needle.is_in(text));
        let entries = &self.entries;
        let erasing = EraseCriteria { entries, all: self.all, derived: &holds, holds: &holds };
        Ok(erase_orphaned_overlay(&self.path, &erasing, dry_run)?.into_iter().collect())
    }
}

impl OrphanedOverlay {
    /// Whether the request names its transcript by a path, absolute or relative to the current
    /// folder.
    pub(super) fn is_named(&self, what: &ForgetRequest) -> bool {
        let (Some(source), Some(named)) = (self.source.as_deref(), what.session.as_deref()) else {
            return false;
        };
        let full = std::path::absolute(named);
        source == Path::new(named) || full.is_ok_and(|full| full == source)
    }
}

/// Whether a missing file belonged to a session: its name is the session's or ends with it, as in
/// `rollout-<time>-<id>.jsonl` and `<time>_<id>.jsonl`.
fn is_of(source: &Path, session: &str) -> bool {
    let stem = memory_session(None, source);
    let before = stem.strip_suffix(session).filter(|_| !session.is_empty());
    before.is_some_and(|before| before.is_empty() || before.ends_with(['-', '_']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_assigned_to_a_session_by_its_name() {
        let check = |file: &str, session: &str, expected: bool| {
            assert_eq!(is_of(Path::new(file), session), expected, "{session} in {file}");
        };
        check("/a/0ec3.jsonl", "0ec3", true);
        check("/a/rollout-2026-01-05T08-00-00-0ec3.jsonl", "0ec3", true);
        check("/a/2026-01-05_0ec3.jsonl", "0ec3", true);
        check("/a/10ec3.jsonl", "0ec3", false);
        check("/a/0ec3-1.jsonl", "0ec3", false);
        check("/a/0ec3.jsonl", "", false);
    }
}
