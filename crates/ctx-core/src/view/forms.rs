//! Sticky projections, as a view keeps them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::{
    CallId, ContextView, Entry, EntryId, Facts, Message, Projected, Projection, ProjectionKey,
    Result,
};

use super::node::Why;

/// The forms messages were given, by entry and content.
#[derive(Debug, Default)]
pub(super) struct Forms {
    keep: bool,
    entries: HashSet<EntryId>,
    known: HashMap<ProjectionKey, Projection>,
    fresh: Vec<ProjectionKey>,
}

impl ContextView {
    /// Gives the view the forms that were sent before, and has it keep new ones for
    /// [`ContextView::take_projections`]. Call it before appending. Of two forms for the same
    /// content the later one counts.
    #[must_use]
    pub fn with_projections(mut self, projections: impl IntoIterator<Item = Projection>) -> Self {
        self.forms.keep = true;
        for projection in projections {
            self.forms.set(projection);
        }
        self
    }

    /// Forms that were given since the view was made or last asked, to be stored.
    pub fn take_projections(&mut self) -> Vec<Projection> {
        let mut seen = HashSet::new();
        let fresh = std::mem::take(&mut self.forms.fresh);
        let fresh = fresh.into_iter().filter(|key| seen.insert(key.clone()));
        fresh.filter_map(|key| self.forms.known.get(&key).cloned()).collect()
    }
}

impl Forms {
    /// Takes a projection in, and says whether that changed anything.
    fn set(&mut self, projection: Projection) -> bool {
        self.entries.insert(projection.key.entry.clone());
        let known = self.known.get(&projection.key);
        if known == Some(&projection) {
            return false;
        }
        self.known.insert(projection.key.clone(), projection);
        true
    }

    /// The known form of an entry, if its source is unchanged. A form may make and answer fewer
    /// calls than its source, but no others.
    pub(super) fn lookup(&self, entry: &Entry, facts: &Facts) -> Result<Option<Projection>> {
        if !self.entries.contains(entry.id()) {
            return Ok(None);
        }
        let key = ProjectionKey { entry: entry.id().clone(), hash: entry.hash()? };
        let Some(known) = self.known.get(&key) else { return Ok(None) };
        let fits = match &known.form {
            Projected::Dropped => true,
            Projected::Replaced(form) => {
                let form = Facts::of(form);
                form.role == facts.role
                    && is_within(&form.calls, &facts.calls)
                    && is_within(&form.results, &facts.results)
            }
        };
        Ok(fits.then(|| known.clone()))
    }

    /// The form a stand-in was trimmed to. That it was once left out says nothing: where it is
    /// needed, it is needed.
    pub(super) fn lookup_replaced(&self, entry: &Entry, facts: &Facts) -> Option<Arc<Message>> {
        match self.lookup(entry, facts) {
            Ok(Some(Projection { form: Projected::Replaced(form), .. })) => Some(form),
            _ => None,
        }
    }

    /// Keeps a form for the next process. An entry that cannot be read again has no hash, and so
    /// no form to keep.
    pub(super) fn remember(&mut self, entry: &Entry, why: &Why, form: Projected) {
        if !self.keep {
            return;
        }
        let Ok(hash) = entry.hash() else { return };
        let key = ProjectionKey { entry: entry.id().clone(), hash };
        let (layer, reason) = (why.layer.to_string(), why.reason.to_string());
        if self.set(Projection { key: key.clone(), layer, form, reason }) {
            self.fresh.push(key);
        }
    }
}

/// Whether `part` is `whole` with some ids left out.
fn is_within(part: &[CallId], whole: &[CallId]) -> bool {
    let mut whole = whole.iter();
    part.iter().all(|id| whole.any(|other| other == id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_may_leave_ids_out_but_bring_none_in() {
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
