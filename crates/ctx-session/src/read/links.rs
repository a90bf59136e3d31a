//! Entries whose parent was missing when they were read: reporting them, and reordering a file that
//! is in reverse order.

use std::collections::HashMap;

use ctx_core::EntryId;

use crate::entry::TreeEntry;
use crate::read::{Builder, ProblemKind, shorten_id};

/// An entry that was attached elsewhere because its parent was missing.
#[derive(Debug)]
pub(crate) struct Unlinked {
    pub(crate) child: u32,
    pub(crate) parent: EntryId,
    /// The index of the problem that reports it, if it was kept.
    pub(crate) note: Option<usize>,
}

impl Builder {
    /// Updates the problem of each such entry with the cause, which is known once all entries are
    /// read. If most parents come after their children, sorts the entries by their links instead,
    /// and returns `true`.
    pub(crate) fn resolve_links(&mut self) -> bool {
        let unlinked = std::mem::take(&mut self.unlinked);
        if unlinked.is_empty() {
            return false;
        }
        let mut links: Vec<Option<u32>> = self.entries.iter().map(|e| e.parent).collect();
        let mut later = 0;
        for one in &unlinked {
            let link = self.find(&one.parent).filter(|parent| *parent >= one.child);
            later += usize::from(link.is_some_and(|parent| parent > one.child));
            if let (Some(link), Some(slot)) = (link, links.get_mut(one.child as usize)) {
                *slot = Some(link);
            }
        }
        if later * 2 > self.entries.len() {
            let notes = unlinked.iter().filter_map(|one| one.note).collect();
            self.problems.withdraw(notes, unlinked.iter().filter(|o| o.note.is_none()).count());
            let text = format!(
                "{later} of {} entries precede their parent: read in the order of their links",
                self.entries.len()
            );
            self.problems.note(0, ProblemKind::Reordered, text);
            let mut bridged = vec![false; links.len()];
            for one in &unlinked {
                let at = one.child as usize;
                if links[at].is_none_or(|parent| parent <= one.child) {
                    links[at] = None;
                    bridged[at] = true;
                }
            }
            self.reorder(&links, &bridged);
            return true;
        }
        let on_cycle = cycles(&links, &unlinked);
        for one in unlinked {
            let Some(link) = links.get(one.child as usize).copied().flatten() else { continue };
            let what = match link {
                link if link == one.child => "names itself as its parent",
                link if link < one.child => continue,
                _ if on_cycle.get(one.child as usize) == Some(&true) => "is part of a cycle",
                _ => "has a parent that comes later in the file",
            };
            let Some(entry) = self.entries.get(one.child as usize) else { continue };
            let bridge = entry.parent().and_then(|parent| self.entries.get(parent));
            let text = match bridge {
                Some(to) => {
                    format!(
                        "{what} ({}): attached to {}",
                        shorten_id(&one.parent),
                        shorten_id(&to.id)
                    )
                }
                None => format!("{what} ({}): read as a root", shorten_id(&one.parent)),
            };
            self.problems.reword(one.note, text);
        }
        false
    }

    /// Moves parents before their children; otherwise later entries come first, as in a reversed
    /// file. A cycle is cut where it is found.
    fn reorder(&mut self, links: &[Option<u32>], bridged: &[bool]) {
        let count = self.entries.len();
        let mut order: Vec<usize> = Vec::with_capacity(count);
        // 0: not visited, 1: on the current path, 2: placed.
        let mut state = vec![0u8; count];
        let mut cut = vec![false; count];
        let mut path = Vec::new();
        for start in (0..count).rev() {
            let mut at = Some(start);
            while let Some(index) = at.filter(|&index| state[index] == 0) {
                state[index] = 1;
                path.push(index);
                at = links[index].map(|parent| parent as usize);
            }
            if let (Some(met), Some(&top)) = (at, path.last())
                && state[met] == 1
            {
                cut[top] = true;
            }
            while let Some(index) = path.pop() {
                state[index] = 2;
                order.push(index);
            }
        }
        let mut place = vec![0u32; count];
        for (new, &old) in order.iter().enumerate() {
            place[old] = u32::try_from(new).unwrap_or(u32::MAX);
        }
        let mut entries: Vec<Option<TreeEntry>> =
            std::mem::take(&mut self.entries).into_iter().map(Some).collect();
        for (new, &old) in order.iter().enumerate() {
            let Some(mut entry) = entries[old].take() else { continue };
            let parent = links[old].filter(|_| !cut[old]).map(|parent| place[parent as usize]);
            // An entry with a missing parent is attached to the entry before it, as elsewhere.
            let root = links[old].is_none() && !bridged[old];
            entry.parent = match parent {
                None if !root => u32::try_from(new).ok().and_then(|new| new.checked_sub(1)),
                parent => parent,
            };
            entry.head = entry.head.map(|head| place[head as usize]);
            self.entries.push(entry);
        }
        for index in self.index.values_mut() {
            *index = place[*index as usize];
        }
        self.tip = u32::try_from(count).ok().and_then(|count| count.checked_sub(1));
    }
}

/// Returns which entries are part of a cycle of links.
fn cycles(links: &[Option<u32>], unlinked: &[Unlinked]) -> Vec<bool> {
    let mut on_cycle = vec![false; links.len()];
    // The walk in which an entry was first visited, counted from 1.
    let mut seen: HashMap<usize, usize> = HashMap::new();
    for (walk, one) in unlinked.iter().enumerate() {
        let mut at = Some(one.child as usize);
        while let Some(index) = at {
            match seen.get(&index) {
                Some(&earlier) if earlier == walk && !on_cycle[index] => on_cycle[index] = true,
                Some(_) => break,
                None => drop(seen.insert(index, walk)),
            }
            at = links.get(index).copied().flatten().map(|parent| parent as usize);
        }
    }
    on_cycle
}
