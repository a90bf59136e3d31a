//! Reading the projections in a file, and selecting those in force.

use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::path::Path;

use ctx_core::{EntryId, Projected, Projection, ProjectionKey, Result};
use ctx_dialect::json::Object;

use super::Transcript;
use super::branch::Branch;
use crate::schema::{CTX_FIELD, PROJECTIONS_TYPE};
use crate::{disk, formats};

/// The beginning of the projections in a compaction entry. Inside a text the quotes are escaped.
const OF_COMPACTION: &str = "\"projections\":[";

/// Projections that were stored together.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StoredProjections {
    /// The compaction that they were stored with, if any.
    pub(crate) by: Option<EntryId>,
    pub(crate) projections: Vec<Projection>,
}

/// Returns all projections in a file of entries, oldest first. Unreadable lines and projections are
/// skipped: without its projection a message is sent in a new form, which costs only a cached
/// prefix.
pub(crate) fn read_projections(path: &Path) -> Result<Vec<StoredProjections>> {
    if formats::in_database(path).is_some() {
        return Ok(Vec::new());
    }
    let failed = |e| disk::io_error("cannot read the projections", path, e);
    let finders =
        [PROJECTIONS_TYPE, OF_COMPACTION].map(|text| memchr::memmem::Finder::new(text.as_bytes()));
    let mut reader = BufReader::with_capacity(256 << 10, disk::open(path).map_err(failed)?);
    let mut line = Vec::new();
    let mut found = Vec::new();
    while {
        line.clear();
        reader.read_until(b'\n', &mut line).map_err(failed)? > 0
    } {
        if finders.iter().all(|finder| finder.find(&line).is_none()) {
            continue;
        }
        let text = String::from_utf8_lossy(&line);
        let Ok(entry) = Object::parse(&text) else { continue };
        let (by, listed) = match entry.object(CTX_FIELD) {
            Some(extra) if entry.text("type").as_deref() == Some("compaction") => {
                (entry.id("id").map(|id| EntryId::from(&*id)), extra.array("projections"))
            }
            _ if entry.text("customType").as_deref() == Some(PROJECTIONS_TYPE) => {
                (None, entry.array("data"))
            }
            _ => continue,
        };
        let listed = listed.unwrap_or_default().into_iter();
        let projections: Vec<Projection> =
            listed.filter_map(|form| serde_json::from_str(form.get()).ok()).collect();
        if !projections.is_empty() {
            found.push(StoredProjections { by, projections });
        }
    }
    Ok(found)
}

impl Transcript {
    /// Returns the projections of the branch to `leaf`, or to the transcript's leaf, oldest first.
    /// Projections that were stored with a compaction are included only while it is in force, even
    /// if they were also stored separately when they were sent.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`](ctx_core::ErrorKind::NotFound) for an unknown entry id, and
    /// [`ErrorKind::Io`](ctx_core::ErrorKind::Io) if an existing file cannot be read.
    pub fn projections(&self, leaf: Option<&EntryId>) -> Result<Vec<Projection>> {
        let mut stored = Vec::new();
        let overlay = self.overlay_entries.as_ref().and_then(|overlay| overlay.source.path());
        for path in [self.file(), overlay].into_iter().flatten() {
            stored.extend(read_projections(path)?);
        }
        let branch = Branch::of(self, self.path(leaf)?);
        let in_force: HashSet<usize> =
            branch.compactions.iter().map(|&at| branch.path[at]).collect();
        let mut gone: HashSet<(ProjectionKey, Option<String>)> = HashSet::new();
        let is_in_force = |id: &EntryId| self.index_of(id).is_some_and(|i| in_force.contains(&i));
        let undone = |id: &EntryId| {
            self.index_of(id).is_some_and(|index| branch.undone.contains_key(&index))
        };
        for stored in &stored {
            if stored.by.as_ref().is_some_and(undone) {
                gone.extend(stored.projections.iter().map(form));
            }
        }
        let mut forms = Vec::new();
        for stored in stored {
            match &stored.by {
                Some(id) if is_in_force(id) => forms.extend(stored.projections),
                Some(_) => {}
                None => {
                    let sent = stored.projections.into_iter();
                    forms.extend(sent.filter(|projection| !gone.contains(&form(projection))));
                }
            }
        }
        Ok(forms)
    }
}

/// Returns the message and the form of a projection, without its layer and reason.
fn form(projection: &Projection) -> (ProjectionKey, Option<String>) {
    let text = match &projection.form {
        Projected::Dropped => None,
        Projected::Replaced(message) => serde_json::to_string(message).ok(),
    };
    (projection.key.clone(), text)
}
