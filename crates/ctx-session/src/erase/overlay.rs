//! Erasing messages from overlays.

use std::io::{Read, Write};
use std::path::Path;

use ctx_core::{IdSource, RawJson, Result, Timestamp};
use ctx_dialect::json::Object;

use super::texts::{erase_from_extra, holds, summary};
use super::{CitedEntries, EraseCriteria, Erased};
use crate::disk::{self, LogFile};
use crate::entry::{MessageEncoding, TreeEntry};
use crate::log::RandomIds;
use crate::overlay::Overlay;
use crate::paths::Home;
use crate::schema::{
    CTX_FIELD, CompactionExtra, Edits, FORGOTTEN_TYPE, Forgotten, NewEntry, PROJECTIONS_TYPE,
    check_overlay_header, json, write_json_line,
};
use crate::transcript::Transcript;

/// Erases messages of another program's file from its overlay, which then hides them. The file
/// itself is not changed and still contains them. Returns `None` if nothing changes. With `dry_run`
/// nothing is written.
///
/// A summary by the other program that mentions erased messages is hidden as a whole.
///
/// # Errors
///
/// [`ErrorKind::Locked`](ctx_core::ErrorKind::Locked) while another process writes to the overlay,
/// [`NotFound`](ctx_core::ErrorKind::NotFound) if the file is missing, and
/// [`Io`](ctx_core::ErrorKind::Io). The overlay is either unchanged or complete.
pub fn erase_in_overlay(
    home: &Home,
    path: &Path,
    criteria: &EraseCriteria<'_>,
    now: Timestamp,
    dry_run: bool,
) -> Result<Option<Erased>> {
    let overlay = Overlay::of(home, path)?;
    let transcript = Transcript::open(path)?.with_overlay(&overlay)?;
    let forgotten = forgotten(&transcript, criteria)?;
    let hiding = match (forgotten.is_empty(), transcript.leaf()) {
        (false, Some(leaf)) => {
            let data = format!("{{\"entries\":{}}}", json(&forgotten)?);
            let data = Some(RawJson::from_text(data));
            let entry = NewEntry::Custom { custom_type: FORGOTTEN_TYPE.into(), data };
            let line = entry.line(&RandomIds.next_id(), Some(leaf), now)?;
            Some((entry, leaf.clone(), line))
        }
        _ => None,
    };
    let hidden = forgotten.len();
    if is_empty(&overlay.path) {
        let Some((entry, leaf, _)) = hiding else { return Ok(None) };
        if !dry_run {
            overlay.append(&entry, Some(&leaf), now)?;
        }
        let path = overlay.path;
        return Ok(Some(Erased { path, hidden, ..Erased::default() }));
    }
    let line = hiding.map(|(.., line)| line).unwrap_or_default();
    let erased = Erased { hidden, ..Erased::default() };
    rewrite(&overlay.path, criteria, erased, &line, dry_run)
}

/// Erases content from an overlay whose transcript no longer exists.
///
/// # Errors
///
/// Those of [`erase_in_overlay`].
pub fn erase_orphaned_overlay(
    overlay: &Path,
    criteria: &EraseCriteria<'_>,
    dry_run: bool,
) -> Result<Option<Erased>> {
    if is_empty(overlay) {
        return Ok(None);
    }
    rewrite(overlay, criteria, Erased::default(), b"", dry_run)
}

/// Whether an overlay is missing or empty (a full disk may have prevented its first line).
fn is_empty(overlay: &Path) -> bool {
    overlay.metadata().map_or(true, |metadata| metadata.len() == 0)
}

/// Returns the messages of the file to hide.
fn forgotten(transcript: &Transcript, criteria: &EraseCriteria<'_>) -> Result<Vec<Forgotten>> {
    let cited = CitedEntries::of(criteria.entries);
    let mut found = Vec::new();
    for (index, entry) in transcript.entries.iter().enumerate() {
        if entry.overlay || entry.head.is_some() || entry.encoding == MessageEncoding::Nothing {
            continue;
        }
        let is_hidden = match entry.is_compaction() {
            false => criteria.covers(&entry.id),
            true => criteria.all || mentions_erased(transcript, entry, criteria, &cited)?,
        };
        if is_hidden {
            found.push(Forgotten { id: entry.id.clone(), hash: transcript.first_line_hash(index) });
        }
    }
    Ok(found)
}

/// Whether a summary by the other program mentions erased messages.
fn mentions_erased(
    transcript: &Transcript,
    entry: &TreeEntry,
    criteria: &EraseCriteria<'_>,
    cited: &CitedEntries<'_>,
) -> Result<bool> {
    let matches = |text: &str| criteria.lines(cited, text).1 > 0;
    Ok(holds(&transcript.text(entry)?, &matches))
}

/// Rewrites an overlay without the erased content and with one additional line.
fn rewrite(
    path: &Path,
    criteria: &EraseCriteria<'_>,
    mut erased: Erased,
    more: &[u8],
    dry_run: bool,
) -> Result<Option<Erased>> {
    erased.path = path.to_owned();
    let accept =
        |first: &[u8]| check_overlay_header(first).map_err(|e| e.with("path", path.display()));
    let lock = if dry_run { None } else { Some(LogFile::open(path, accept)?) };
    let mut text = Vec::new();
    disk::open(path)
        .and_then(|mut file| file.read_to_end(&mut text))
        .map_err(|e| disk::io_error("cannot read the overlay", path, e))?;
    let cited = CitedEntries::of(criteria.entries);
    let mut bytes = Vec::with_capacity(text.len() + more.len());
    for (number, raw) in text.split(|&byte| byte == b'\n').enumerate() {
        if raw.trim_ascii().is_empty() {
            continue;
        }
        let read = String::from_utf8_lossy(raw);
        if number == 0 {
            write_json_line(&mut bytes, &read)?;
        } else if let Some(kept) = line_without(&read, criteria, &cited, &mut erased)? {
            write_json_line(&mut bytes, &kept)?;
        }
    }
    bytes.extend_from_slice(more);
    if erased.is_nothing() {
        return Ok(None);
    }
    if let Some(lock) = lock {
        disk::replace(path, |out| out.write_all(&bytes))?;
        drop(lock);
    }
    Ok(Some(erased))
}

/// Returns a line of an overlay without the erased content; `None` if nothing is left of it.
fn line_without(
    text: &str,
    criteria: &EraseCriteria<'_>,
    cited: &CitedEntries<'_>,
    erased: &mut Erased,
) -> Result<Option<String>> {
    let Ok(object) = Object::parse(text) else {
        // An unreadable line is useless, and may contain erased content.
        erased.others += 1;
        return Ok(None);
    };
    let kind = object.text("type").unwrap_or_default();
    let custom = object.text("customType").unwrap_or_default();
    if criteria.all && custom != FORGOTTEN_TYPE {
        let count = match &*kind {
            "compaction" => &mut erased.summary_lines,
            _ => &mut erased.others,
        };
        *count += object.text("summary").map_or(1, |summary| summary.lines().count().max(1));
        return Ok(None);
    }
    let mut edits = Edits::new(text, &object);
    if kind == "compaction" {
        erased.summary_lines += summary(criteria, cited, &object, &mut edits);
        let mut extra = CompactionExtra::of(&object).unwrap_or_default();
        let forms = erase_from_extra(criteria, &mut extra);
        if forms > 0 || object.has(CTX_FIELD) {
            edits.set(CTX_FIELD, json(&extra)?);
        }
        erased.forms += forms;
        if erased.hidden > 0 {
            erased.undo_ended.extend(object.id("id").map(|id| ctx_core::EntryId::from(&*id)));
        }
    } else if custom == PROJECTIONS_TYPE {
        let (kept, gone) = criteria.forms(&object);
        erased.forms += gone;
        if gone > 0 && kept.is_empty() {
            return Ok(None);
        }
        if gone > 0 {
            edits.set("data", ctx_dialect::json::array(kept.iter().map(RawJson::as_str)));
        }
    } else if custom != FORGOTTEN_TYPE && holds(text, criteria.holds) {
        erased.others += 1;
        return Ok(None);
    }
    Ok(Some(edits.apply()))
}
