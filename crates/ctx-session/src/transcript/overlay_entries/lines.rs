//! Reading an overlay's lines, before they are placed in the tree.

use std::sync::Arc;

use ctx_core::{ContentHash, EntryId, Result, Role};
use ctx_dialect::json::Object;

use crate::disk::is_newer;
use crate::entry::{EntryKind, MessageEncoding, TreeEntry};
use crate::read::{ProblemKind, Problems, shorten_id, timestamp};
use crate::schema::{
    FORGOTTEN_TYPE, Forgotten, PROJECTIONS_TYPE, UNDO_TYPE, check_overlay_header, forgotten_of,
};
use crate::source::{Source, SourceLine, SourceLines, SourcePosition};

/// One entry of an overlay.
pub(super) struct OverlayLine {
    /// The entry, without its place in the tree.
    pub(super) entry: TreeEntry,
    pub(super) parent: EntryId,
    pub(super) effect: OverlayEffect,
}

/// The effect of an overlay entry on other entries.
pub(super) enum OverlayEffect {
    Compaction { first_kept: Option<EntryId>, hash: Option<ContentHash> },
    Undo { target: EntryId },
    Edit { target: EntryId },
    Forgets(Vec<Forgotten>),
    Nothing,
}

/// Reads an overlay's entries except its projections, which are not part of the tree.
pub(super) fn read_lines(
    source: &Arc<Source>,
    problems: &mut Problems,
) -> Result<Vec<OverlayLine>> {
    let mut lines = SourceLines::new(source);
    let mut found = Vec::new();
    while let Some(line) = lines.next()? {
        if line.number == 1 {
            match check_overlay_header(line.bytes) {
                Ok(()) => continue,
                Err(e) if is_newer(&e) => return Err(e.with("path", source.name())),
                Err(_) => {}
            }
        }
        let number = line.number;
        match read_line(line) {
            Ok(Some(line)) => found.push(line),
            Ok(None) => {}
            Err(what) => note(problems, number, &what),
        }
    }
    Ok(found)
}

/// Notes a problem with a line.
pub(super) fn note(problems: &mut Problems, line: u64, what: &str) {
    let text = format!("line {line} of the overlay: {what}");
    problems.note(0, ProblemKind::DamagedOverlay, text);
}

fn read_line(line: SourceLine<'_>) -> Result<Option<OverlayLine>, String> {
    let text = line.bytes.trim_ascii();
    if text.is_empty() {
        return Ok(None);
    }
    let damaged = || "damaged: skipped".to_owned();
    let text = std::str::from_utf8(line.bytes).map_err(|_| damaged())?;
    let object = Object::parse(text).map_err(|_| damaged())?;
    let place = SourcePosition::of(line.bytes, line.offset, line.number).ok_or_else(damaged)?;
    let kind = object.text("type").unwrap_or_default();
    let custom = object.text("customType");
    if custom.as_deref() == Some(PROJECTIONS_TYPE) {
        return Ok(None);
    }
    let id = object.id("id").filter(|id| !id.is_empty());
    let id = id.ok_or_else(|| "entry without an id: skipped".to_owned())?;
    let parent = object.id("parentId");
    let parent = parent.ok_or_else(|| "entry without a parent: skipped".to_owned())?;
    let target = |of: &Object<'_>| {
        let target = of.id("targetId").map(|id| EntryId::from(&*id));
        target.ok_or_else(|| "entry without a target: skipped".to_owned())
    };
    let kind = EntryKind::from_name(&kind);
    let effect = match &kind {
        EntryKind::Compaction => {
            let extra = object.object("ctx").unwrap_or_default();
            let hash = extra.get("firstKeptHash");
            OverlayEffect::Compaction {
                first_kept: object.id("firstKeptEntryId").map(|id| EntryId::from(&*id)),
                hash: hash.and_then(|raw| serde_json::from_str(raw.get()).ok()),
            }
        }
        EntryKind::Custom if custom.as_deref() == Some(UNDO_TYPE) => {
            OverlayEffect::Undo { target: target(&object.object("data").unwrap_or_default())? }
        }
        EntryKind::Custom if custom.as_deref() == Some(FORGOTTEN_TYPE) => {
            OverlayEffect::Forgets(forgotten_of(&object))
        }
        EntryKind::ContextEdit => OverlayEffect::Edit { target: target(&object)? },
        EntryKind::Custom => OverlayEffect::Nothing,
        // Messages belong in the file; an entry that moves the leaf would hide messages.
        other => {
            return Err(format!(
                "{} is not allowed in an overlay: skipped",
                shorten_id(other.name())
            ));
        }
    };
    let mut entry = TreeEntry {
        id: id.as_ref().into(),
        timestamp: timestamp(&object),
        place,
        part: (0, place.span.len),
        overlay: true,
        ..TreeEntry::new(kind)
    };
    if let OverlayEffect::Compaction { .. } = effect {
        entry.role = Some(Role::CompactionSummary);
        entry.encoding = MessageEncoding::PiCompaction;
    }
    Ok(Some(OverlayLine { entry, parent: parent.as_ref().into(), effect }))
}
