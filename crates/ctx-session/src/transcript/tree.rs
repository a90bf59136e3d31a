//! The shape of the tree: tips, and ancestors.

use crate::entry::TreeEntry;
use crate::transcript::Transcript;

impl Transcript {
    /// Returns the tips of all branches: entries without children.
    pub fn tips(&self) -> Vec<usize> {
        let mut is_tip = vec![true; self.entries.len()];
        for parent in self.entries.iter().filter_map(TreeEntry::parent) {
            if let Some(tip) = is_tip.get_mut(parent) {
                *tip = false;
            }
        }
        is_tip.into_iter().enumerate().filter(|(_, tip)| *tip).map(|(index, _)| index).collect()
    }
}

/// The ancestor relation: each entry's position in a depth-first walk of the tree, and the end of
/// its subtree.
pub(crate) struct Ancestry {
    spans: Vec<(usize, usize)>,
}

impl Ancestry {
    /// Parents precede their children.
    pub(crate) fn of(transcript: &Transcript) -> Self {
        let entries = &transcript.entries;
        let mut sizes = vec![1; entries.len()];
        for (index, entry) in entries.iter().enumerate().rev() {
            let size = sizes[index];
            if let Some(of_parent) = entry.parent().and_then(|parent| sizes.get_mut(parent)) {
                *of_parent += size;
            }
        }
        let mut spans = Vec::with_capacity(entries.len());
        // The position of the next root, and of the next child of each entry.
        let (mut next_root, mut next_child) = (0, Vec::with_capacity(entries.len()));
        for (entry, size) in entries.iter().zip(sizes) {
            let of_parent = entry.parent().and_then(|parent| next_child.get_mut(parent));
            let next = of_parent.unwrap_or(&mut next_root);
            let begin = *next;
            *next += size;
            next_child.push(begin + 1);
            spans.push((begin, begin + size));
        }
        Self { spans }
    }

    /// Whether `a` is an ancestor of `b`, or the same entry.
    pub(crate) fn is_ancestor(&self, a: usize, b: usize) -> bool {
        match (self.spans.get(a), self.spans.get(b)) {
            (Some(a), Some(b)) => (a.0..a.1).contains(&b.0),
            _ => false,
        }
    }
}
