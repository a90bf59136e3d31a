//! Where an overlay's entries have their place in the tree, and what they mean there.

use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

use ctx_core::{EntryId, Role};

use super::read::{OverlayLine, Says, note};
use super::settle::settle;
use crate::builder::short;
use crate::entry::{Audience, Detail, TreeEntry};
use crate::load::Recipe;
use crate::problem::Problems;
use crate::transcript::Transcript;

/// Entries of the file by their own id. Of several that were recorded under one id, the newest is
/// found by it; but that is not the one that was meant when the file was shorter.
pub(super) struct Ids(HashMap<EntryId, u32>);

impl Ids {
    fn of(transcript: &Transcript, lines: &[OverlayLine]) -> Self {
        let mut needed: HashSet<&str> = HashSet::new();
        for line in lines {
            needed.insert(&line.parent);
            needed.extend(match &line.says {
                Says::Compaction { first_kept, .. } => first_kept.as_deref(),
                Says::Undo { target } | Says::Edit { target } => Some(&**target),
                Says::Forgets(_) | Says::Nothing => None,
            });
        }
        let mut own = HashMap::with_capacity(needed.len());
        for (index, entry) in transcript.entries.iter().enumerate() {
            if needed.contains(&*entry.id) {
                own.insert(entry.id.clone(), small(index));
            }
        }
        Self(own)
    }

    /// The entry of the file, or of the overlay, that is meant by an id.
    pub(super) fn find(&self, transcript: &Transcript, id: &str) -> Option<u32> {
        self.0.get(id).copied().or_else(|| transcript.index.get(id).copied())
    }
}

/// Puts the entries of an overlay into the tree. Returns on which entry of the file each of them
/// hangs in the end.
pub(super) fn hang(
    transcript: &mut Transcript,
    lines: Vec<OverlayLine>,
    problems: &mut Problems,
) -> HashMap<u32, u32> {
    let mut ids = Ids::of(transcript, &lines);
    let mut hung: Vec<(u32, OverlayLine)> = Vec::with_capacity(lines.len());
    let mut anchors: HashMap<EntryId, u32> = HashMap::with_capacity(lines.len());
    for line in lines {
        let taken = anchors.contains_key(&line.id) || transcript.index.contains_key(&line.id);
        let anchor = anchors.get(&line.parent).copied();
        match anchor.or_else(|| ids.find(transcript, &line.parent)) {
            _ if taken => note(problems, line.line, "an id that is taken: left out"),
            Some(anchor) => {
                anchors.insert(line.id.clone(), anchor);
                hung.push((anchor, line));
            }
            None => {
                let parent = short(&line.parent);
                note(problems, line.line, &format!("{parent} is not in the file: left out"));
            }
        }
    }
    hung.sort_by_key(|(anchor, _)| *anchor);
    let spliced = splice(transcript, hung);
    for index in ids.0.values_mut() {
        *index = at(&spliced.place, *index);
    }
    settle(transcript, &ids, spliced.says, problems);
    spliced.anchors
}

/// What came of putting two lists of entries together.
#[derive(Default)]
struct Spliced {
    /// Where each entry of the file is now.
    place: Vec<u32>,
    /// From each entry of the overlay to the one of the file that it hangs on.
    anchors: HashMap<u32, u32>,
    /// What each entry of the overlay says of others, with its line.
    says: Vec<(u32, u64, Says)>,
}

/// Puts entries behind those of the file that they hang on, which they are sorted by. What hung
/// there before hangs on the last of them.
fn splice(transcript: &mut Transcript, hung: Vec<(u32, OverlayLine)>) -> Spliced {
    let of_file = std::mem::take(&mut transcript.entries);
    let mut entries = Vec::with_capacity(of_file.len() + hung.len());
    let mut out = Spliced { place: Vec::with_capacity(of_file.len()), ..Spliced::default() };
    // Where the children of each entry of the file hang now.
    let mut ends: Vec<u32> = Vec::with_capacity(of_file.len());
    let mut ids: Vec<(EntryId, u32)> = Vec::with_capacity(hung.len());
    let mut hung = hung.into_iter().peekable();
    for (old, mut entry) in of_file.into_iter().enumerate() {
        let place = small(entries.len());
        out.place.push(place);
        entry.parent = entry.parent.map(|parent| at(&ends, parent));
        entry.head = entry.head.map(|head| at(&out.place, head));
        entries.push(entry);
        let mut end = place;
        while let Some((_, line)) = hung.next_if(|(anchor, _)| *anchor as usize == old) {
            let index = small(entries.len());
            ids.push((line.id.clone(), index));
            out.anchors.insert(index, place);
            let (entry, says) = tree_entry(line, end);
            out.says.push((index, entry.line, says));
            entries.push(entry);
            end = index;
        }
        ends.push(end);
    }
    for entry in entries.iter_mut().filter(|entry| !entry.overlay) {
        if let Some(target) = entry.detail.as_deref_mut().and_then(Detail::target_mut) {
            *target = at(&out.place, *target);
        }
    }
    for index in transcript.index.values_mut() {
        *index = at(&out.place, *index);
    }
    transcript.index.extend(ids);
    transcript.leaf = transcript.leaf.map(|leaf| at(&ends, leaf));
    transcript.entries = entries;
    transcript.children = OnceLock::new();
    out
}

fn tree_entry(line: OverlayLine, parent: u32) -> (TreeEntry, Says) {
    let is_compaction = matches!(line.says, Says::Compaction { .. });
    let entry = TreeEntry {
        id: line.id,
        parent: Some(parent),
        role: is_compaction.then_some(Role::CompactionSummary),
        recipe: if is_compaction { Recipe::PiCompaction } else { Recipe::Nothing },
        kind: line.kind,
        timestamp: line.timestamp,
        line: line.line,
        span: line.span,
        part: (0, line.span.len),
        fingerprint: line.fingerprint,
        mended: false,
        head: None,
        audience: Audience::Model,
        overlay: true,
        detail: None,
    };
    (entry, line.says)
}

fn at(list: &[u32], index: u32) -> u32 {
    list.get(index as usize).copied().unwrap_or(index)
}

/// More than four billion entries do not fit in any memory this runs on.
fn small(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}
