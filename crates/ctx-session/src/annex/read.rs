//! An overlay's lines, before they have their place in the tree.

use std::sync::Arc;

use ctx_core::{ContentHash, EntryId, Result, Timestamp};
use ctx_dialect::json::Object;

use crate::builder::short;
use crate::entry::EntryKind;
use crate::erase::{FORGOTTEN_TYPE, Forgotten, forgotten_of};
use crate::lines::{Line, Lines};
use crate::log::UNDO_TYPE;
use crate::overlay::check_header;
use crate::problem::{ProblemKind, Problems};
use crate::projections::PROJECTIONS_TYPE;
use crate::read::timestamp;
use crate::source::{Source, Span, fingerprint};

/// One entry of an overlay.
pub(super) struct OverlayLine {
    pub(super) id: EntryId,
    pub(super) parent: EntryId,
    pub(super) kind: EntryKind,
    pub(super) timestamp: Option<Timestamp>,
    pub(super) line: u64,
    pub(super) span: Span,
    pub(super) fingerprint: u64,
    pub(super) says: Says,
}

/// What it says of other entries.
pub(super) enum Says {
    Compaction { first_kept: Option<EntryId>, hash: Option<ContentHash> },
    Undo { target: EntryId },
    Edit { target: EntryId },
    Forgets(Vec<Forgotten>),
    Nothing,
}

/// Reads an overlay's entries, but for its projections, which are no part of the tree.
pub(super) fn lines(source: &Arc<Source>, problems: &mut Problems) -> Result<Vec<OverlayLine>> {
    let mut lines = Lines::new(source);
    let mut found = Vec::new();
    while let Some(line) = lines.next()? {
        if line.number == 1 && check_header(line.bytes).is_ok() {
            continue;
        }
        let number = line.number;
        match read(line) {
            Ok(Some(line)) => found.push(line),
            Ok(None) => {}
            Err(what) => note(problems, number, &what),
        }
    }
    Ok(found)
}

/// Says what is wrong with a line.
pub(super) fn note(problems: &mut Problems, line: u64, what: &str) {
    let text = format!("line {line} of what ctx keeps beside the file: {what}");
    problems.note(0, ProblemKind::DamagedOverlay, text);
}

fn read(line: Line<'_>) -> Result<Option<OverlayLine>, String> {
    let text = line.bytes.trim_ascii();
    if text.is_empty() {
        return Ok(None);
    }
    let damaged = || "damaged: left out".to_owned();
    let text = std::str::from_utf8(line.bytes).map_err(|_| damaged())?;
    let object = Object::parse(text).map_err(|_| damaged())?;
    let len = u32::try_from(line.bytes.len()).map_err(|_| damaged())?;
    let kind = object.text("type").unwrap_or_default();
    let custom = object.text("customType");
    if custom.as_deref() == Some(PROJECTIONS_TYPE) {
        return Ok(None);
    }
    let id = object.id("id").filter(|id| !id.is_empty());
    let id = id.ok_or_else(|| "an entry without an id: left out".to_owned())?;
    let parent = object.id("parentId");
    let parent = parent.ok_or_else(|| "an entry that hangs on nothing: left out".to_owned())?;
    let target = |of: &Object<'_>| {
        let target = of.id("targetId").map(|id| EntryId::from(&*id));
        target.ok_or_else(|| "an entry that does not say what it is of: left out".to_owned())
    };
    let kind = EntryKind::from_name(&kind);
    let says = match &kind {
        EntryKind::Compaction => {
            let mark = object.object("ctx").unwrap_or_default();
            let hash = mark.get("firstKeptHash");
            Says::Compaction {
                first_kept: object.id("firstKeptEntryId").map(|id| EntryId::from(&*id)),
                hash: hash.and_then(|raw| serde_json::from_str(raw.get()).ok()),
            }
        }
        EntryKind::Custom if custom.as_deref() == Some(UNDO_TYPE) => {
            Says::Undo { target: target(&object.object("data").unwrap_or_default())? }
        }
        EntryKind::Custom if custom.as_deref() == Some(FORGOTTEN_TYPE) => {
            Says::Forgets(forgotten_of(&object))
        }
        EntryKind::ContextEdit => Says::Edit { target: target(&object)? },
        EntryKind::Custom => Says::Nothing,
        // What is said belongs into the file; what moves the leaf would hide what is said.
        other => return Err(format!("no place for a {}: left out", short(other.name()))),
    };
    Ok(Some(OverlayLine {
        id: id.as_ref().into(),
        parent: parent.as_ref().into(),
        kind,
        timestamp: timestamp(&object),
        line: line.number,
        span: Span { offset: line.offset, len },
        fingerprint: fingerprint(line.bytes),
        says,
    }))
}
