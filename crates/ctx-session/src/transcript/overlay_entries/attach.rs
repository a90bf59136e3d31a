//! Placing an overlay's entries in the tree, and resolving their references.

use std::collections::{HashMap, HashSet};

use ctx_core::EntryId;

use super::lines::{OverlayEffect, OverlayLine, note};
use super::resolve::resolve;
use crate::entry::{Detail, TreeEntry};
use crate::read::{Problems, shorten_id};
use crate::transcript::Transcript;

/// The entries of the file that overlay entries refer to. If several were recorded under one id,
/// this finds the first: it may have been the only one when ctx wrote the reference.
pub(super) struct Ids(HashMap<EntryId, u32>);

impl Ids {
    fn of(transcript: &Transcript, lines: &[OverlayLine]) -> Self {
        let mut needed: HashSet<&str> = HashSet::new();
        for line in lines {
            needed.insert(&line.parent);
            needed.extend(match &line.effect {
                OverlayEffect::Compaction { first_kept, .. } => first_kept.as_deref(),
                OverlayEffect::Undo { target } | OverlayEffect::Edit { target } => Some(&**target),
                OverlayEffect::Forgets(_) | OverlayEffect::Nothing => None,
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

    /// Finds the entry of the file or of the overlay with this id.
    pub(super) fn find(&self, transcript: &Transcript, id: &str) -> Option<u32> {
        self.0.get(id).copied().or_else(|| transcript.index.get(id).copied())
    }
}

/// Adds the entries of an overlay to the tree. Returns for each of them the entry of the file that
/// it is attached to, directly or through other overlay entries.
pub(super) fn attach(
    transcript: &mut Transcript,
    lines: Vec<OverlayLine>,
    problems: &mut Problems,
) -> HashMap<u32, u32> {
    let mut ids = Ids::of(transcript, &lines);
    let mut attached: Vec<(u32, OverlayLine)> = Vec::with_capacity(lines.len());
    let mut anchors: HashMap<EntryId, u32> = HashMap::with_capacity(lines.len());
    for line in lines {
        let (id, number) = (&line.entry.id, line.entry.place.line);
        let taken = anchors.contains_key(id) || transcript.index.contains_key(id);
        let anchor = anchors.get(&line.parent).copied();
        match anchor.or_else(|| ids.find(transcript, &line.parent)) {
            _ if taken => note(problems, number, "duplicate id: skipped"),
            Some(anchor) => {
                anchors.insert(id.clone(), anchor);
                attached.push((anchor, line));
            }
            None => {
                let parent = shorten_id(&line.parent);
                note(problems, number, &format!("{parent} is not in the file: skipped"));
            }
        }
    }
    attached.sort_by_key(|(anchor, _)| *anchor);
    let spliced = merge_entries(transcript, attached);
    for index in ids.0.values_mut() {
        *index = at(&spliced.place, *index);
    }
    resolve(transcript, &ids, spliced.effect, problems);
    spliced.anchors
}

/// The result of merging two lists of entries.
#[derive(Default)]
struct MergedEntries {
    /// The new index of each entry of the file.
    place: Vec<u32>,
    /// Maps each entry of the overlay to the entry of the file that it is attached to.
    anchors: HashMap<u32, u32>,
    /// The index, the line and the effect of each overlay entry.
    effect: Vec<(u32, u64, OverlayEffect)>,
}

/// Inserts each entry after the entry of the file that it is attached to, by which `attached` is
/// sorted. The previous children of that entry become children of the last inserted one.
fn merge_entries(transcript: &mut Transcript, attached: Vec<(u32, OverlayLine)>) -> MergedEntries {
    let of_file = std::mem::take(&mut transcript.entries);
    let mut entries = Vec::with_capacity(of_file.len() + attached.len());
    let mut out =
        MergedEntries { place: Vec::with_capacity(of_file.len()), ..MergedEntries::default() };
    // The new parent for the children of each entry of the file.
    let mut ends: Vec<u32> = Vec::with_capacity(of_file.len());
    let mut ids: Vec<(EntryId, u32)> = Vec::with_capacity(attached.len());
    let mut attached = attached.into_iter().peekable();
    for (old, mut entry) in of_file.into_iter().enumerate() {
        let place = small(entries.len());
        out.place.push(place);
        entry.parent = entry.parent.map(|parent| at(&ends, parent));
        entry.head = entry.head.map(|head| at(&out.place, head));
        entries.push(entry);
        let mut end = place;
        while let Some((_, line)) = attached.next_if(|(anchor, _)| *anchor as usize == old) {
            let index = small(entries.len());
            let entry = TreeEntry { parent: Some(end), ..line.entry };
            ids.push((entry.id.clone(), index));
            out.anchors.insert(index, place);
            out.effect.push((index, entry.place.line, line.effect));
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
    out
}

fn at(list: &[u32], index: u32) -> u32 {
    list.get(index as usize).copied().unwrap_or(index)
}

/// Converts an index. More than four billion entries do not fit in memory.
fn small(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}
