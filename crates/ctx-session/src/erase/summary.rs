//! Compactions without what their summaries, notes and forms say of messages that go.

use ctx_core::{Error, ErrorKind, Result};
use ctx_dialect::json::{Object, quote};

use super::texts::holds;
use super::{Cited, Erasing};
use crate::compactions::Mark;
use crate::repair::Edits;

/// Takes out of a summary and its details what was drawn from what goes; says how many lines.
pub(super) fn summary(
    erasing: &Erasing<'_>,
    cited: &Cited<'_>,
    object: &Object<'_>,
    edits: &mut Edits<'_>,
) -> usize {
    let mut gone = 0;
    if let Some(text) = object.text("summary") {
        let (kept, lines) = erasing.lines(cited, &text);
        if lines > 0 {
            edits.set("summary", quote(&kept));
            gone += lines;
        }
    }
    let details = object.get("details").and_then(|raw| serde_json::from_str(raw.get()).ok());
    if let Some(mut details) = details {
        let notes = erasing.scrub(cited, &mut details);
        if notes > 0 {
            edits.set("details", details.to_string());
            gone += notes;
        }
    }
    gone
}

/// Takes out of a compaction's mark the forms and the messages that go; says how many forms.
pub(super) fn mark_without(erasing: &Erasing<'_>, mark: &mut Mark) -> Result<usize> {
    mark.staying.retain(|id| !erasing.takes(id));
    let before = mark.projections.len();
    let mut kept = Vec::with_capacity(before);
    for form in mark.projections.drain(..) {
        if !erasing.takes(&form.key.entry) && !holds(&json(&form)?, erasing.holds) {
            kept.push(form);
        }
    }
    mark.projections = kept;
    Ok(before - mark.projections.len())
}

pub(super) fn json(value: &impl serde::Serialize) -> Result<String> {
    serde_json::to_string(value)
        .map_err(|e| Error::new(ErrorKind::InvalidInput, "the entry cannot be written").source(e))
}
