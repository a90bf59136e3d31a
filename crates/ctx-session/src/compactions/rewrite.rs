//! Rewriting a ctx session without the messages that its newest compaction replaced.

use ctx_core::text::Slice;
use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::path::{Path, PathBuf};

use ctx_core::{EntryId, Error, ErrorKind, IdSource, Result, Timestamp};
use ctx_dialect::json::{Object, quote};

use super::archive::{archive, clear_stale, free_name};
use crate::disk;
use crate::entry::{Detail, EntryKind, TreeEntry};
use crate::log::{LogOptions, RandomIds, SessionLog, is_foreign};
use crate::schema::{
    CTX_FIELD, CompactionExtra, Edits, NewEntry, SYSTEM_PROMPT_TYPE, TOOLS_TYPE, json,
    write_json_line,
};
use crate::transcript::{Branch, Transcript};

/// The result of a rewrite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RewriteResult {
    /// The archived original session.
    pub archived: PathBuf,
    /// The compaction whose summary now begins the session.
    pub compaction: EntryId,
    /// The number of entries before.
    pub entries_before: usize,
    /// The number of entries now.
    pub entries: usize,
}

/// Rewrites a ctx session so that it begins with the summary of the newest compaction in force.
/// After it come the earlier messages that the compaction left in place, then the kept part and
/// everything after it, unchanged and with the other branches that begin there.
///
/// The original is archived beside the session as `<file>.archived-<n>`, and the summary's entry
/// records this name; an existing archive is never overwritten. The new file replaces the session
/// atomically: after a crash the session is the old or the new one, and the next rewrite removes
/// leftovers. The replaced messages are then only in the archive, so the compaction can no longer
/// be undone.
///
/// # Errors
///
/// The session is unchanged on any error: [`ErrorKind::InvalidInput`] if the file is not a ctx
/// session; [`ErrorKind::NotFound`] if the file is missing, no compaction is in force, or the
/// session was already rewritten from the newest one; [`ErrorKind::Locked`] while another process
/// writes to it; [`ErrorKind::Conflict`] if another program changes it meanwhile;
/// [`ErrorKind::Io`].
pub fn rewrite_compacted(path: &Path) -> Result<RewriteResult> {
    let log = match SessionLog::open(path, LogOptions::default()) {
        Err(error) if is_foreign(&error) => return Err(foreign(path, error)),
        opened => opened?,
    };
    let transcript = Transcript::open(path)?;
    let branch = Branch::of(&transcript, transcript.path(None)?);
    let nothing = |what| Error::new(ErrorKind::NotFound, what).with("path", path.display());
    let first = format!("compact it first: `ctx compact {}`", path.display());
    let Some(&place) = branch.compactions.last() else {
        let error = nothing("the session has no compaction in force");
        return Err(error.hint(first));
    };
    let newest = branch.path.get(place).copied().unwrap_or_default();
    if let Some(archived) = transcript.compaction_extra(newest)?.archived {
        let error = nothing("the session was already rewritten from its newest compaction");
        return Err(error.with("archived in", archived).hint(first));
    }
    let kept = KeptEntries::of(&transcript, &branch, place)?;
    clear_stale(path);
    let archived = free_name(path)?;
    let bytes = kept.write(&archived)?;
    check(&transcript, &bytes)?;
    log.check_unchanged()?;
    archive(path, &archived)?;
    if let Err(error) = disk::replace(path, |out| out.write_all(&bytes)) {
        clear_stale(path);
        return Err(error);
    }
    let compaction = transcript.entries.get(kept.compaction).map(|entry| entry.id.clone());
    Ok(RewriteResult {
        archived,
        compaction: compaction.unwrap_or_default(),
        entries_before: transcript.entries.len(),
        entries: kept.kept.len() + kept.carried.len() + 1,
    })
}

/// Adds a hint for a file that is not a ctx session, depending on its format.
fn foreign(path: &Path, error: Error) -> Error {
    let transcript = match Transcript::open(path) {
        Ok(transcript) => transcript,
        Err(error) => return error,
    };
    let path = path.display();
    let format = transcript.format;
    let hint = match format.holds_compacted_history() {
        true => format!(
            "`ctx convert {path} --to {format} --compacted --output NEW` writes its \
             compactedHistory to a new file; to continue in a ctx session, convert it: \
             `ctx convert {path} --to ctx --output NEW`"
        ),
        false => format!(
            "convert it to a ctx session first: `ctx convert {path} --to ctx --output NEW`; or \
             compact it without a rewrite: `ctx compact {path}`"
        ),
    };
    Error::new(ErrorKind::InvalidInput, "cannot rewrite a file of another program")
        .with("path", path)
        .source(error)
        .hint(hint)
}

/// The entries that a rewrite keeps.
struct KeptEntries<'t> {
    transcript: &'t Transcript,
    compaction: usize,
    /// Earlier settings that are still in force.
    carried: Vec<usize>,
    /// Entries that are kept, in the order of the file.
    kept: Vec<usize>,
    /// The model in force, if only a removed answer names it.
    model: Option<(String, String)>,
}

impl<'t> KeptEntries<'t> {
    fn of(transcript: &'t Transcript, branch: &Branch, place: usize) -> Result<Self> {
        let first_kept = branch.first_kept(transcript, place).place;
        let compaction = branch.path.get(place).copied().unwrap_or_default();
        let places: HashMap<usize, usize> =
            branch.path.iter().enumerate().map(|(place, &index)| (index, place)).collect();
        let left_in_place = transcript.staying(compaction)?;
        let last = transcript.entries.len().saturating_sub(1);
        let mut stays = vec![false; transcript.entries.len()];
        let mut kept = Vec::new();
        for (index, entry) in transcript.entries.iter().enumerate() {
            let at = places.get(&index).copied();
            let on_branch = at.is_some_and(|at| at >= first_kept);
            let below = entry.parent().is_some_and(|parent| stays.get(parent) == Some(&true));
            // A leaf entry applies wherever it is in the tree.
            let leaf = index == last && entry.kind == EntryKind::Leaf;
            let Some(stay) = stays.get_mut(index) else { continue };
            *stay = on_branch || below || leaf;
            // The newest summary includes earlier summaries.
            let superseded = entry.is_compaction() && at.is_some_and(|at| at <= place);
            // A message that is left in place does not keep its children.
            let is_left = at.is_some() && is_or_edits(entry, index, &left_in_place);
            if (*stay || is_left) && !superseded {
                kept.push(index);
            }
        }
        let carried = carried(transcript, branch.path.slice(..first_kept));
        let model = branch.model(transcript).ok().flatten();
        Ok(Self { transcript, compaction, carried, kept, model })
    }

    /// Returns the content of the new file.
    fn write(&self, archived: &Path) -> Result<Vec<u8>> {
        let entries = &self.transcript.entries;
        let mut out = Vec::new();
        write_json_line(&mut out, self.transcript.header.raw.as_deref().unwrap_or_default())?;
        let Some(summary) = entries.get(self.compaction) else { return Ok(out) };
        self.write_summary(summary, archived, &mut out)?;
        let mut base = summary.id.clone();
        if let Some((provider, model)) = self.model.clone() {
            let id = self.fresh_id();
            let change = NewEntry::ModelChange { provider, model_id: model };
            let time = summary.timestamp.unwrap_or(Timestamp(0));
            out.extend(change.line(&id, Some(&base), time)?);
            base = id;
        }
        for entry in self.carried.iter().filter_map(|&index| entries.get(index)) {
            self.write_entry(entry, &base, &mut out)?;
            base = entry.id.clone();
        }
        // The new parent of each entry's children: the entry itself or, if removed, its new parent.
        let mut new_parents: HashMap<usize, EntryId> = HashMap::new();
        let mut kept = self.kept.iter().copied().peekable();
        for (index, entry) in entries.iter().enumerate() {
            let parent = entry.parent().and_then(|parent| new_parents.get(&parent));
            let parent = parent.unwrap_or(&base).clone();
            if kept.next_if_eq(&index).is_some() {
                self.write_entry(entry, &parent, &mut out)?;
                new_parents.insert(index, entry.id.clone());
            } else {
                new_parents.insert(index, parent);
            }
        }
        Ok(out)
    }

    fn write_entry(&self, entry: &TreeEntry, parent: &EntryId, out: &mut Vec<u8>) -> Result<()> {
        let text = self.transcript.text(entry)?;
        let Ok(object) = Object::parse(&text) else { return write_json_line(out, &text) };
        let mut edits = Edits::new(&text, &object);
        if object.id("parentId").as_deref() != Some(&**parent) {
            edits.set("parentId", quote(parent));
        }
        if object.id("id").as_deref() != Some(&*entry.id) {
            edits.set("id", quote(&entry.id));
        }
        write_json_line(out, &edits.apply())
    }

    fn write_summary(&self, entry: &TreeEntry, archived: &Path, out: &mut Vec<u8>) -> Result<()> {
        let text = self.transcript.text(entry)?;
        let Ok(object) = Object::parse(&text) else { return write_json_line(out, &text) };
        let name = archived.file_name().unwrap_or_default().to_string_lossy();
        let extra = CompactionExtra::of(&object).unwrap_or_default();
        let extra = CompactionExtra { archived: Some(name.into_owned()), ..extra };
        let mut edits = Edits::new(&text, &object);
        edits.set("parentId", "null".to_owned());
        edits.set(CTX_FIELD, json(&extra)?);
        write_json_line(out, &edits.apply())
    }

    fn fresh_id(&self) -> EntryId {
        loop {
            let id: String = RandomIds.next_id().chars().take(8).collect();
            if self.transcript.index_of(&id).is_none() {
                return id.into();
            }
        }
    }
}

/// Whether an entry is in `left_in_place`, or edits an entry that is.
fn is_or_edits(entry: &TreeEntry, index: usize, left_in_place: &HashSet<usize>) -> bool {
    let target = match entry.detail.as_deref() {
        Some(Detail::Edit { target: Some(target) }) => *target as usize,
        _ => index,
    };
    left_in_place.contains(&target)
}

/// Returns the newest setting of each kind before the kept part.
fn carried(transcript: &Transcript, before: &[usize]) -> Vec<usize> {
    let mut newest: HashMap<String, usize> = HashMap::new();
    for &index in before {
        let Some(entry) = transcript.entries.get(index) else { continue };
        let kind = match (&entry.kind, entry.detail.as_deref()) {
            (EntryKind::ThinkingLevelChange, Some(Detail::Thinking(_))) => "thinking".to_owned(),
            (EntryKind::SessionInfo, _) => "info".to_owned(),
            (EntryKind::Custom, _) => {
                let text = transcript.text(entry).unwrap_or_default();
                let object = Object::parse(&text).unwrap_or_default();
                match object.owned("customType") {
                    Some(kind) if kind == SYSTEM_PROMPT_TYPE || kind == TOOLS_TYPE => kind,
                    _ => continue,
                }
            }
            _ => continue,
        };
        newest.insert(kind, index);
    }
    let mut carried: Vec<usize> = newest.into_values().collect();
    carried.sort_unstable();
    carried
}

/// Refuses a new file whose context differs from the old file's context.
fn check(before: &Transcript, bytes: &[u8]) -> Result<()> {
    let seen = |transcript: &Transcript| -> Result<Vec<_>> {
        let entries = transcript.context(None)?.entries;
        entries.iter().map(|entry| Ok((entry.id().clone(), entry.hash()?))).collect()
    };
    let after = Transcript::from_bytes(bytes.to_vec())?;
    if seen(&after)? == seen(before)? {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Corrupt, "the rewrite would change the context of the session")
        .with("path", before.file().unwrap_or(Path::new("")).display())
        .hint("the session is unchanged; `ctx check` may show the cause"))
}
