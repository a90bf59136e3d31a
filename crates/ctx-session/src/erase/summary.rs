//! Removing erased content from the summaries, details and projections of compactions.

use ctx_core::{Error, ErrorKind, Result};
use ctx_dialect::json::{Object, quote};

use super::texts::holds;
use super::{CitedEntries, EraseCriteria};
use crate::schema::{CompactionExtra, Edits};

/// Removes the lines derived from erased messages from a summary and its details. Returns their
/// number.
pub(super) fn summary(
    criteria: &EraseCriteria<'_>,
    cited: &CitedEntries<'_>,
    object: &Object<'_>,
    edits: &mut Edits<'_>,
) -> usize {
    let mut gone = 0;
    if let Some(text) = object.text("summary") {
        let (kept, lines) = criteria.lines(cited, &text);
        if lines > 0 {
            edits.set("summary", quote(&kept));
            gone += lines;
        }
    }
    let details = object.get("details").and_then(|raw| serde_json::from_str(raw.get()).ok());
    if let Some(mut details) = details {
        let notes = criteria.scrub(cited, &mut details);
        if notes > 0 {
            edits.set("details", details.to_string());
            gone += notes;
        }
    }
    gone
}

/// Removes erased messages and their projections from the field `ctx` of a compaction. Returns the
/// number of removed projections.
pub(super) fn erase_from_extra(
    criteria: &EraseCriteria<'_>,
    extra: &mut CompactionExtra,
) -> Result<usize> {
    extra.staying.retain(|id| !criteria.covers(id));
    let before = extra.projections.len();
    let mut kept = Vec::with_capacity(before);
    for form in extra.projections.drain(..) {
        if !criteria.covers(&form.key.entry) && !holds(&json(&form)?, criteria.holds) {
            kept.push(form);
        }
    }
    extra.projections = kept;
    Ok(before - extra.projections.len())
}

pub(super) fn json(value: &impl serde::Serialize) -> Result<String> {
    serde_json::to_string(value)
        .map_err(|e| Error::new(ErrorKind::InvalidInput, "cannot write the entry").source(e))
}
