//! The projections of a view.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::{
    CallId, ContextView, Entry, EntryId, Message, MessageOutline, Projected, Projection,
    ProjectionKey, Result,
};

use super::node::Reason;

/// The forms of messages, by entry and content.
#[derive(Debug, Default)]
pub(super) struct Projections {
    keep: bool,
    entries: HashSet<EntryId>,
    known: HashMap<ProjectionKey, Projection>,
    fresh: Vec<ProjectionKey>,
}

impl ContextView {
    /// Sets the forms that were sent before, and records new ones for
    /// [`ContextView::take_projections`]. Call it before appending. If two forms are for the same
    /// content, the later is used.
    #[must_use]
    pub fn with_projections(mut self, projections: impl IntoIterator<Item = Projection>) -> Self {
        self.projections.keep = true;
        for projection in projections {
            self.projections.set(projection);
        }
        self
    }

    /// Returns the forms set since the view was created or since the last call, for storage.
    pub fn take_projections(&mut self) -> Vec<Projection> {
        let mut seen = HashSet::new();
        let fresh = std::mem::take(&mut self.projections.fresh);
        let fresh = fresh.into_iter().filter(|key| seen.insert(key.clone()));
        fresh.filter_map(|key| self.projections.known.get(&key).cloned()).collect()
    }
}

impl Projections {
    /// Adds a projection. Returns whether that changed anything.
    fn set(&mut self, projection: Projection) -> bool {
        self.entries.insert(projection.key.entry.clone());
        let known = self.known.get(&projection.key);
        if known == Some(&projection) {
            return false;
        }
        self.known.insert(projection.key.clone(), projection);
        true
    }

    /// Returns the known form of an entry, if its source is unchanged. A form may have fewer calls
    /// and results than its source, but no others.
    pub(super) fn lookup(
        &self,
        entry: &Entry,
        outline: &MessageOutline,
    ) -> Result<Option<Projection>> {
        if !self.entries.contains(entry.id()) {
            return Ok(None);
        }
        let key = ProjectionKey { entry: entry.id().clone(), hash: entry.hash()? };
        let Some(known) = self.known.get(&key) else { return Ok(None) };
        let fits = match &known.form {
            Projected::Dropped => true,
            Projected::Replaced(form) => {
                let form = MessageOutline::of(form);
                form.role == outline.role
                    && is_within(&form.calls, &outline.calls)
                    && is_within(&form.results, &outline.results)
            }
        };
        Ok(fits.then(|| known.clone()))
    }

    /// Returns the truncated form of a synthetic result. An earlier drop is ignored: the result is
    /// added only where it is needed.
    pub(super) fn lookup_replaced(
        &self,
        entry: &Entry,
        outline: &MessageOutline,
    ) -> Option<Arc<Message>> {
        match self.lookup(entry, outline) {
            Ok(Some(Projection { form: Projected::Replaced(form), .. })) => Some(form),
            _ => None,
        }
    }

    /// Records a form for the next process. An entry that cannot be read again has no hash, so its
    /// form is not recorded.
    pub(super) fn remember(
        &mut self,
        entry: &Entry,
        why: &Reason,
        form: Projected,
        points_to: Vec<ProjectionKey>,
    ) {
        if !self.keep {
            return;
        }
        let Ok(hash) = entry.hash() else { return };
        let key = ProjectionKey { entry: entry.id().clone(), hash };
        let (layer, reason) = (why.layer.clone(), why.reason.clone());
        if self.set(Projection { key: key.clone(), layer, form, reason, points_to }) {
            self.fresh.push(key);
        }
    }
}

/// Whether `part` is `whole` without some of its ids.
fn is_within(part: &[CallId], whole: &[CallId]) -> bool {
    let mut whole = whole.iter();
    part.iter().all(|id| whole.any(|other| other == id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_may_omit_ids_but_not_add_any() {
        let ids = |text: &str| text.chars().map(|c| c.to_string().into()).collect::<Vec<CallId>>();
        for (part, whole, within) in [
            ("", "", true),
            ("", "ab", true),
            ("ac", "abc", true),
            ("ca", "abc", false),
            ("aa", "ab", false),
        ] {
            assert_eq!(is_within(&ids(part), &ids(whole)), within, "{part} in {whole}");
        }
    }
}
