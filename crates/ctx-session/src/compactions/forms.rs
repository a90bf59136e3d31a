//! The forms that came with compactions, while those are in force.

use std::collections::HashSet;

use ctx_core::{EntryId, Projected, Projection, ProjectionKey, Result};

use crate::branch::Branch;
use crate::projections::Kept;
use crate::transcript::Transcript;

impl Transcript {
    /// The forms in which messages were sent, for the branch to `leaf`, or to the transcript's leaf,
    /// oldest first. Those that came with a compaction are there as long as it is in force; without
    /// it they are gone, also where they were kept a second time as forms that were sent.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`](ctx_core::ErrorKind::NotFound) if there is no entry of that id, and
    /// [`ErrorKind::Io`](ctx_core::ErrorKind::Io) if a file that is there cannot be read.
    pub fn sent_forms(&self, leaf: Option<&EntryId>) -> Result<Vec<Projection>> {
        let mut kept = Vec::new();
        let annex = self.annex.as_ref().and_then(|annex| annex.source.path());
        for path in [self.file(), annex].into_iter().flatten() {
            kept.extend(crate::projections::read_kept(path)?);
        }
        self.forms_in_force(leaf, kept)
    }

    /// Of the forms that were kept, those that hold on a branch.
    pub(crate) fn forms_in_force(
        &self,
        leaf: Option<&EntryId>,
        kept: Vec<Kept>,
    ) -> Result<Vec<Projection>> {
        let branch = Branch::of(self, self.path(leaf)?);
        let in_force = branch.in_force();
        let mut gone: HashSet<(ProjectionKey, Option<String>)> = HashSet::new();
        let is_in_force = |id: &EntryId| self.index_of(id).is_some_and(|i| in_force.contains(&i));
        let undone = |id: &EntryId| {
            self.index_of(id).is_some_and(|index| branch.undone.contains_key(&index))
        };
        for kept in &kept {
            if kept.by.as_ref().is_some_and(undone) {
                gone.extend(kept.projections.iter().map(form));
            }
        }
        let mut forms = Vec::new();
        for kept in kept {
            match &kept.by {
                Some(id) if is_in_force(id) => forms.extend(kept.projections),
                Some(_) => {}
                None => {
                    let held = kept.projections.into_iter();
                    forms.extend(held.filter(|projection| !gone.contains(&form(projection))));
                }
            }
        }
        Ok(forms)
    }
}

/// What a projection makes of which message, whoever did it and why.
fn form(projection: &Projection) -> (ProjectionKey, Option<String>) {
    let text = match &projection.form {
        Projected::Dropped => None,
        Projected::Replaced(message) => serde_json::to_string(message).ok(),
    };
    (projection.key.clone(), text)
}
