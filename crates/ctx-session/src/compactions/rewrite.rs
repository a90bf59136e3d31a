//! A session of ours written anew without what its newest compaction stands for.

use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::path::{Path, PathBuf};

use ctx_core::{EntryId, Error, ErrorKind, IdSource, Result, Timestamp};
use ctx_dialect::json::{Object, quote};

use super::archive::{archive, clear_stale, free_name};
use super::body::{MARK, Mark};
use super::place::is_foreign;
use crate::branch::Branch;
use crate::disk;
use crate::entry::{Detail, EntryKind, TreeEntry};
use crate::format::Format;
use crate::log::{Body, LogOptions, NewEntry, RandomIds, SessionLog};
use crate::read::{SYSTEM_PROMPT, TOOLS};
use crate::repair::{Edits, line};
use crate::transcript::Transcript;

/// What a rewrite did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rewritten {
    /// Where the session is as it was.
    pub archived: PathBuf,
    /// The compaction whose summary now begins the session.
    pub compaction: EntryId,
    /// Entries of the session before.
    pub entries_before: usize,
    /// Entries of it now.
    pub entries: usize,
}

/// Writes a session of ours anew: the summary of the newest compaction in force, then the messages
/// it left standing before what it kept, then what it kept and what came later, other branches that
/// begin there included, all as it was.
///
/// The session as it was stays beside it, as `<file>.archived-<n>`, which the summary's entry names;
/// none that is there already is overwritten. The new file takes its place in one step: a crash
/// leaves the one or the other, and what else it leaves the next rewrite takes away. What the summary
/// stands for is only in the archived file from then on, so the compaction can no longer be undone.
///
/// # Errors
///
/// With the session as it was in any case: [`ErrorKind::InvalidInput`] for a file that is not ours,
/// [`ErrorKind::NotFound`] if there is no such file, no compaction is in force, or the session was
/// rewritten since the newest; [`ErrorKind::Locked`] while another process writes to it,
/// [`ErrorKind::Conflict`] if another program changes it meanwhile, [`ErrorKind::Io`].
pub fn rewrite_compacted(path: &Path) -> Result<Rewritten> {
    let log = match SessionLog::open(path, LogOptions::default()) {
        Err(error) if is_foreign(error.kind()) => return Err(foreign(path, error)),
        opened => opened?,
    };
    let transcript = Transcript::open(path)?;
    let branch = Branch::of(&transcript, transcript.path(None)?);
    let nothing = |what| Error::new(ErrorKind::NotFound, what).with("path", path.display());
    let first = format!("compact it first: `ctx compact {}`", path.display());
    let Some(&place) = branch.compactions.last() else {
        let error = nothing("the session has no compaction in force to be rewritten from");
        return Err(error.hint(first));
    };
    let newest = branch.path.get(place).copied().unwrap_or_default();
    if let Some(archived) = transcript.archived_by(newest)? {
        let error = nothing("the session was rewritten from its newest compaction already");
        return Err(error.with("archived in", archived).hint(first));
    }
    let cut = Cut::of(&transcript, &branch, place)?;
    clear_stale(path);
    let archived = free_name(path)?;
    let bytes = cut.write(&archived)?;
    check(&transcript, &bytes)?;
    let len = std::fs::metadata(path).map(|metadata| metadata.len());
    let len = len.map_err(|e| disk::io_error("cannot look at the file", path, e))?;
    if len != log.bytes() {
        return Err(Error::new(ErrorKind::Conflict, "another program changed the file")
            .with("path", path.display())
            .hint("try again; let no other program write to it meanwhile"));
    }
    archive(path, &archived)?;
    if let Err(error) = disk::replace(path, |out| out.write_all(&bytes)) {
        clear_stale(path);
        return Err(error);
    }
    let compaction = transcript.entries.get(cut.compaction).map(|entry| entry.id.clone());
    Ok(Rewritten {
        archived,
        compaction: compaction.unwrap_or_default(),
        entries_before: transcript.entries.len(),
        entries: cut.kept.len() + cut.carried.len() + 1,
    })
}

/// What to do with a file that is not ours, in its format's own way.
fn foreign(path: &Path, error: Error) -> Error {
    let transcript = match Transcript::open(path) {
        Ok(transcript) => transcript,
        Err(error) => return error,
    };
    let path = path.display();
    let hint = match transcript.format() {
        Format::PonyBunny => format!(
            "`ctx convert {path} --to ponybunny --compacted --output NEW` writes its \
             compactedHistory to a new file; to go on in a session of ctx, convert it to one: \
             `ctx convert {path} --to ctx --output NEW`"
        ),
        _ => format!(
            "convert it to a session of ctx first: `ctx convert {path} --to ctx --output NEW`; or \
             compact it as it is, beside it: `ctx compact {path}`"
        ),
    };
    Error::new(ErrorKind::InvalidInput, "a file of another program is not rewritten")
        .with("path", path)
        .source(error)
        .hint(hint)
}

/// What stays of a session.
struct Cut<'t> {
    transcript: &'t Transcript,
    compaction: usize,
    /// Settings from before that are still in force.
    carried: Vec<usize>,
    /// Entries that stay, in the order of the file.
    kept: Vec<usize>,
    /// The model in force, where only an answer says so that does not stay.
    model: Option<(String, String)>,
}

impl<'t> Cut<'t> {
    fn of(transcript: &'t Transcript, branch: &Branch, place: usize) -> Result<Self> {
        let first_kept = branch.first_kept(transcript, place).place;
        let compaction = branch.path.get(place).copied().unwrap_or_default();
        let places: HashMap<usize, usize> =
            branch.path.iter().enumerate().map(|(place, &index)| (index, place)).collect();
        let standing = transcript.staying(compaction)?;
        let last = transcript.entries.len().saturating_sub(1);
        let mut stays = vec![false; transcript.entries.len()];
        let mut kept = Vec::new();
        for (index, entry) in transcript.entries.iter().enumerate() {
            let at = places.get(&index).copied();
            let on_branch = at.is_some_and(|at| at >= first_kept);
            let below = entry.parent().is_some_and(|parent| stays.get(parent) == Some(&true));
            // Where the leaf was moved to counts wherever the entry hangs that says so.
            let leaf = index == last && entry.kind == EntryKind::Leaf;
            let Some(stay) = stays.get_mut(index) else { continue };
            *stay = on_branch || below || leaf;
            // Of earlier compactions the summaries are part of the newest.
            let superseded = entry.is_compaction() && at.is_some_and(|at| at <= place);
            // What hangs on a message that is left standing does not stay for that.
            let stands = at.is_some() && is_or_edits(entry, index, &standing);
            if (*stay || stands) && !superseded {
                kept.push(index);
            }
        }
        let carried = carried(transcript, branch.path.get(..first_kept).unwrap_or_default());
        let model = branch.model(transcript).ok().flatten();
        Ok(Self { transcript, compaction, carried, kept, model })
    }

    /// The new file.
    fn write(&self, archived: &Path) -> Result<Vec<u8>> {
        let entries = &self.transcript.entries;
        let mut out = Vec::new();
        line(&mut out, self.transcript.header().raw.as_deref().unwrap_or_default())?;
        let Some(summary) = entries.get(self.compaction) else { return Ok(out) };
        self.write_summary(summary, archived, &mut out)?;
        let mut base = summary.id.clone();
        if let Some((provider, model)) = self.model.clone() {
            let id = self.fresh_id();
            let change = NewEntry::ModelChange { provider, model_id: model };
            let mut text = Vec::new();
            let time = summary.timestamp.unwrap_or(Timestamp(0));
            change.write_line(&id, Some(&base), time, &mut text)?;
            out.write_all(&text).map_err(crate::repair::write_error)?;
            base = id;
        }
        for entry in self.carried.iter().filter_map(|&index| entries.get(index)) {
            self.write_entry(entry, &base, &mut out)?;
            base = entry.id.clone();
        }
        // What the children of each entry hang on; of one that goes, what that one hung on.
        let mut hangs_on: HashMap<usize, EntryId> = HashMap::new();
        let mut kept = self.kept.iter().copied().peekable();
        for (index, entry) in entries.iter().enumerate() {
            let parent = entry.parent().and_then(|parent| hangs_on.get(&parent));
            let parent = parent.unwrap_or(&base).clone();
            if kept.next_if_eq(&index).is_some() {
                self.write_entry(entry, &parent, &mut out)?;
                hangs_on.insert(index, entry.id.clone());
            } else {
                hangs_on.insert(index, parent);
            }
        }
        Ok(out)
    }

    fn write_entry(&self, entry: &TreeEntry, parent: &EntryId, out: &mut Vec<u8>) -> Result<()> {
        let text = self.transcript.text(entry)?;
        let Ok(object) = Object::parse(&text) else { return line(out, &text) };
        let mut edits = Edits::new(&text, &object);
        if object.id("parentId").as_deref() != Some(&**parent) {
            edits.set("parentId", quote(parent));
        }
        if object.id("id").as_deref() != Some(&*entry.id) {
            edits.set("id", quote(&entry.id));
        }
        line(out, &edits.apply())
    }

    fn write_summary(&self, entry: &TreeEntry, archived: &Path, out: &mut Vec<u8>) -> Result<()> {
        let text = self.transcript.text(entry)?;
        let Ok(object) = Object::parse(&text) else { return line(out, &text) };
        let name = archived.file_name().unwrap_or_default().to_string_lossy();
        let mark = Mark::of(&object).unwrap_or_default();
        let mark = Mark { archived: Some(name.into_owned()), ..mark };
        let mark = serde_json::to_string(&mark).map_err(|e| {
            Error::new(ErrorKind::InvalidInput, "the compaction cannot be written").source(e)
        })?;
        let mut edits = Edits::new(&text, &object);
        edits.set("parentId", "null".to_owned());
        edits.set(MARK, mark);
        line(out, &edits.apply())
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

/// Whether an entry is one of those `standing`, or says how one of them is to be read.
fn is_or_edits(entry: &TreeEntry, index: usize, standing: &HashSet<usize>) -> bool {
    let target = match entry.detail.as_deref() {
        Some(Detail::Edit { target: Some(target) }) => *target as usize,
        _ => index,
    };
    standing.contains(&target)
}

/// The newest of each kind of setting on the way to what is kept.
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
                    Some(kind) if kind == SYSTEM_PROMPT || kind == TOOLS => kind,
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

/// Refuses a new file that a model would see anything else of.
fn check(before: &Transcript, bytes: &[u8]) -> Result<()> {
    let seen = |transcript: &Transcript| -> Result<Vec<_>> {
        let entries = transcript.context(None)?.entries;
        entries.iter().map(|entry| Ok((entry.id().clone(), entry.hash()?))).collect()
    };
    let after = Transcript::from_bytes(bytes.to_vec())?;
    if seen(&after)? == seen(before)? {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Corrupt, "the session would read differently when rewritten")
        .with("path", before.file().unwrap_or(Path::new("")).display())
        .hint("it is left as it is; `ctx check` may tell what is unusual in it"))
}
