//! Overlays whose transcripts are not there any more, or are others now.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use ctx_core::{EntryId, Projection, Result};
use ctx_session::erase::{Erased, Erasing, erase_from_overlay, forms_in};

use super::plan::Plan;
use super::results::{Fate, Traces};
use super::{Forget, check};
use crate::memory_session;

/// An overlay without its transcript.
#[derive(Clone, Debug)]
pub(super) struct LostOverlay {
    pub(super) path: PathBuf,
    /// Where its transcript was, if it says so.
    pub(super) source: Option<PathBuf>,
}

/// What is to go of such an overlay.
pub(super) struct Lost {
    pub(super) path: PathBuf,
    /// Everything.
    all: bool,
    /// Whether its transcript is the session that was named.
    is_named: bool,
    entries: HashSet<EntryId>,
    forms: Vec<Projection>,
}

impl Lost {
    /// What goes of it. `archived` are the messages that no transcript has any more, with their
    /// sessions.
    pub(super) fn of(
        what: &Forget,
        overlay: &LostOverlay,
        archived: &[(String, EntryId)],
    ) -> Result<Self> {
        let path = overlay.path.clone();
        let is_named = overlay.is_named(what);
        // What cannot be read keeps nothing.
        let forms = forms_in(&path).unwrap_or_default();
        let source = overlay.source.as_deref();
        let of_it = archived
            .iter()
            .filter(|(session, _)| source.is_some_and(|source| is_of(source, session)));
        let mut entries: HashSet<EntryId> = of_it.map(|(_, entry)| entry.clone()).collect();
        for id in what.entries.iter().filter(|_| is_named) {
            let ids = forms.iter().map(|form| &form.key.entry);
            let begun: BTreeSet<&EntryId> = ids.filter(|of| of.starts_with(id.as_str())).collect();
            check::begun(id, begun.iter().map(|of| &***of))?;
            let is_one = begun.len() == 1;
            entries.extend(begun.into_iter().filter(|of| is_one || ***of == **id).cloned());
            entries.insert(EntryId::from(id.as_str()));
        }
        Ok(Self { path, all: is_named && what.is_whole(), is_named, entries, forms })
    }

    /// Whether it may tell of an entry that was named.
    pub(super) fn knows(&self, id: &str) -> bool {
        let text = || ctx_disk::read(&self.path).unwrap_or_default();
        self.is_named && String::from_utf8_lossy(&text()).contains(id)
    }

    /// Learns of the files that its forms speak of.
    pub(super) fn trace(&self, traces: &mut Traces) {
        if !self.all && self.entries.is_empty() {
            self.forms.iter().for_each(|form| traces.stays_elsewhere(form));
            return;
        }
        let mut traces = traces.in_session();
        for form in &self.forms {
            let goes = self.all || self.entries.contains(&form.key.entry);
            traces.form(form, if goes { Fate::Goes } else { Fate::Stays });
        }
    }

    /// Erases it. With `dry_run` nothing is written.
    pub(super) fn erase(&self, what: &Forget, plan: &Plan, dry_run: bool) -> Result<Vec<Erased>> {
        let is_out_of_scope = what.session.is_some() && !self.is_named;
        if !self.all && self.entries.is_empty() && (plan.needle.is_none() || is_out_of_scope) {
            return Ok(Vec::new());
        }
        let needle = plan.needle.as_ref().filter(|_| !is_out_of_scope);
        let holds = |text: &str| needle.is_some_and(|needle| needle.is_in(text));
        let entries = &self.entries;
        let erasing = Erasing { entries, all: self.all, derived: &holds, holds: &holds };
        Ok(erase_from_overlay(&self.path, &erasing, dry_run)?.into_iter().collect())
    }
}

impl LostOverlay {
    /// Whether it is of the session that was named by its path, from wherever one stands.
    pub(super) fn is_named(&self, what: &Forget) -> bool {
        let (Some(source), Some(named)) = (self.source.as_deref(), what.session.as_deref()) else {
            return false;
        };
        let full = std::path::absolute(named);
        source == Path::new(named) || full.is_ok_and(|full| full == source)
    }
}

/// Whether a file that is gone was that of a session: its name was the session's, or ended with it, as
/// `rollout-<time>-<id>.jsonl` and `<time>_<id>.jsonl` do.
fn is_of(source: &Path, session: &str) -> bool {
    let stem = memory_session(None, source);
    let before = stem.strip_suffix(session).filter(|_| !session.is_empty());
    before.is_some_and(|before| before.is_empty() || before.ends_with(['-', '_']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_known_by_its_name_to_be_of_a_session() {
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
