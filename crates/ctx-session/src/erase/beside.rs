//! Overlays without what is erased, and what they say of it.

use std::io::{Read, Write};
use std::path::Path;

use ctx_core::{IdSource, RawJson, Result, Timestamp};
use ctx_dialect::json::Object;

use super::summary::{json, mark_without, summary};
use super::texts::holds;
use super::{Cited, Erased, Erasing, FORGOTTEN_TYPE, Forgotten};
use crate::compactions::{MARK, Mark};
use crate::disk;
use crate::entry::TreeEntry;
use crate::load::Recipe;
use crate::log::{Body, LogFile, NewEntry, RandomIds};
use crate::overlay::{Overlay, check_header};
use crate::paths::Home;
use crate::projections::PROJECTIONS_TYPE;
use crate::repair::{Edits, line};
use crate::transcript::Transcript;

/// Erases messages of another program's file from what ctx keeps beside it, and has that hide them
/// from now on: the file itself is not written, and still holds them. `None` if there is nothing to
/// be done. With `dry_run` nothing is written.
///
/// A summary that the other program wrote and that tells of what goes is hidden as a whole.
///
/// # Errors
///
/// [`ErrorKind::Locked`](ctx_core::ErrorKind::Locked) while another process writes to the overlay, [`NotFound`](ctx_core::ErrorKind::NotFound)
/// if there is no such file, [`Io`](ctx_core::ErrorKind::Io). The overlay is as it was, or as it is to be.
pub fn erase_beside(
    home: &Home,
    path: &Path,
    erasing: &Erasing<'_>,
    now: Timestamp,
    dry_run: bool,
) -> Result<Option<Erased>> {
    let overlay = Overlay::of(home, path)?;
    let transcript = Transcript::open(path)?.with_overlay(&overlay)?;
    let forgotten = forgotten(&transcript, erasing)?;
    let hiding = match (forgotten.is_empty(), transcript.leaf()) {
        (false, Some(leaf)) => {
            let data = format!("{{\"entries\":{}}}", json(&forgotten)?);
            let data = Some(RawJson::from_text(data));
            let entry = NewEntry::Custom { custom_type: FORGOTTEN_TYPE.into(), data };
            let mut line = Vec::new();
            entry.write_line(&RandomIds.next_id(), Some(leaf), now, &mut line)?;
            Some((entry, leaf.clone(), line))
        }
        _ => None,
    };
    let hidden = forgotten.len();
    if is_empty(overlay.path()) {
        let Some((entry, leaf, _)) = hiding else { return Ok(None) };
        if !dry_run {
            overlay.append(&entry, Some(&leaf), now)?;
            overlay.release()?;
        }
        let path = overlay.path().to_owned();
        return Ok(Some(Erased { path, hidden, ..Erased::default() }));
    }
    let line = hiding.map(|(.., line)| line).unwrap_or_default();
    let erased = Erased { hidden, ..Erased::default() };
    rewrite(overlay.path(), erasing, erased, &line, dry_run)
}

/// Erases what an overlay says itself, where its transcript is not there any more.
///
/// # Errors
///
/// Those of [`erase_beside`].
pub fn erase_from_overlay(
    overlay: &Path,
    erasing: &Erasing<'_>,
    dry_run: bool,
) -> Result<Option<Erased>> {
    if is_empty(overlay) {
        return Ok(None);
    }
    rewrite(overlay, erasing, Erased::default(), b"", dry_run)
}

/// Whether there is nothing in an overlay: there is none, or its first line never reached a disk that
/// was full.
fn is_empty(overlay: &Path) -> bool {
    overlay.metadata().map_or(true, |metadata| metadata.len() == 0)
}

/// What of the file is to be hidden.
fn forgotten(transcript: &Transcript, erasing: &Erasing<'_>) -> Result<Vec<Forgotten>> {
    let cited = Cited::of(erasing.entries);
    let mut found = Vec::new();
    for (index, entry) in transcript.entries.iter().enumerate() {
        if entry.is_overlay() || entry.head.is_some() || entry.recipe == Recipe::Nothing {
            continue;
        }
        let goes = match entry.is_compaction() {
            false => erasing.takes(&entry.id),
            true => erasing.all || tells(transcript, entry, erasing, &cited)?,
        };
        if goes {
            found.push(Forgotten { id: entry.id.clone(), hash: transcript.first_line_hash(index) });
        }
    }
    Ok(found)
}

/// Whether a summary of the other program tells of what goes.
fn tells(
    transcript: &Transcript,
    entry: &TreeEntry,
    erasing: &Erasing<'_>,
    cited: &Cited<'_>,
) -> Result<bool> {
    let is_it = |text: &str| erasing.lines(cited, text).1 > 0;
    Ok(holds(&transcript.text(entry)?, &is_it))
}

/// Puts an overlay without what is erased, and with one line more, in the place of the old one.
fn rewrite(
    path: &Path,
    erasing: &Erasing<'_>,
    mut erased: Erased,
    more: &[u8],
    dry_run: bool,
) -> Result<Option<Erased>> {
    erased.path = path.to_owned();
    let accept = |first: &[u8]| check_header(first).map_err(|e| e.with("path", path.display()));
    let lock = if dry_run { None } else { Some(LogFile::open(path, accept)?) };
    let mut text = Vec::new();
    disk::open(path)
        .and_then(|mut file| file.read_to_end(&mut text))
        .map_err(|e| disk::io_error("cannot read the overlay", path, e))?;
    let cited = Cited::of(erasing.entries);
    let mut bytes = Vec::with_capacity(text.len() + more.len());
    for (number, raw) in text.split(|&byte| byte == b'\n').enumerate() {
        if raw.trim_ascii().is_empty() {
            continue;
        }
        let read = String::from_utf8_lossy(raw);
        if number == 0 {
            line(&mut bytes, &read)?;
        } else if let Some(kept) = line_without(&read, erasing, &cited, &mut erased)? {
            line(&mut bytes, &kept)?;
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

/// A line of an overlay without what it says of what goes; `None` if nothing is left of it.
fn line_without(
    text: &str,
    erasing: &Erasing<'_>,
    cited: &Cited<'_>,
    erased: &mut Erased,
) -> Result<Option<String>> {
    let Ok(object) = Object::parse(text) else {
        // It may hold a part of what goes, and says nothing to anybody.
        erased.others += 1;
        return Ok(None);
    };
    let kind = object.text("type").unwrap_or_default();
    let custom = object.text("customType").unwrap_or_default();
    if erasing.all && custom != FORGOTTEN_TYPE {
        let count = match &*kind {
            "compaction" => &mut erased.summary_lines,
            _ => &mut erased.others,
        };
        *count += object.text("summary").map_or(1, |summary| summary.lines().count().max(1));
        return Ok(None);
    }
    let mut edits = Edits::new(text, &object);
    if kind == "compaction" {
        erased.summary_lines += summary(erasing, cited, &object, &mut edits);
        let mut mark = Mark::of(&object).unwrap_or_default();
        let forms = mark_without(erasing, &mut mark)?;
        if forms > 0 || object.has(MARK) {
            edits.set(MARK, json(&mark)?);
        }
        erased.forms += forms;
        if erased.hidden > 0 {
            erased.undo_ended.extend(object.id("id").map(|id| ctx_core::EntryId::from(&*id)));
        }
    } else if custom == PROJECTIONS_TYPE {
        let data = object.get("data").map_or("[]", |data| data.get());
        let forms: Vec<RawJson> = serde_json::from_str(data).unwrap_or_default();
        let (kept, gone) = erasing.forms(&forms);
        if gone > 0 && kept.is_empty() {
            erased.forms += gone;
            return Ok(None);
        }
        if gone > 0 {
            erased.forms += gone;
            edits.set("data", ctx_dialect::json::array(kept.iter().map(RawJson::as_str)));
        }
    } else if custom != FORGOTTEN_TYPE && holds(text, erasing.holds) {
        erased.others += 1;
        return Ok(None);
    }
    Ok(Some(edits.apply()))
}
