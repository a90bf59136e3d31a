//! The shape of the tree: roots, children, tips.

use crate::entry::TreeEntry;
use crate::transcript::Transcript;

impl Transcript {
    /// Returns the entries without a parent.
    #[must_use]
    pub fn roots(&self) -> Vec<usize> {
        let roots = self.entries.iter().enumerate().filter(|(_, entry)| entry.parent.is_none());
        roots.map(|(index, _)| index).collect()
    }

    /// Returns the children of the entry at `index`, in the order of the file.
    #[must_use]
    pub fn children(&self, index: usize) -> Vec<usize> {
        let lists = self.children.get_or_init(|| Children::of(&self.entries));
        lists.of_entry(index)
    }

    /// Returns the tips of all branches: entries without children.
    #[must_use]
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

/// The children of every entry, as linked lists in two arrays: each entry's first child, and each
/// child's next sibling.
pub(crate) struct Children {
    first: Vec<Option<u32>>,
    next: Vec<Option<u32>>,
}

impl Children {
    fn of(entries: &[TreeEntry]) -> Self {
        let mut lists = Self { first: vec![None; entries.len()], next: vec![None; entries.len()] };
        // In reverse, so that each list is in the order of the file.
        for (index, entry) in entries.iter().enumerate().rev() {
            let first = entry.parent().and_then(|parent| lists.first.get_mut(parent));
            if let (Some(first), Some(next)) = (first, lists.next.get_mut(index)) {
                *next = first.take();
                *first = u32::try_from(index).ok();
            }
        }
        lists
    }

    fn of_entry(&self, index: usize) -> Vec<usize> {
        let at = |list: &[Option<u32>], index: usize| {
            list.get(index).copied().flatten().map(|index| index as usize)
        };
        std::iter::successors(at(&self.first, index), |&child| at(&self.next, child)).collect()
    }
}

/// The ancestor relation: each entry's position in a depth-first walk of the tree, and the end of
/// its subtree.
pub(crate) struct Ancestry {
    spans: Vec<(usize, usize)>,
}

impl Ancestry {
    pub(crate) fn of(transcript: &Transcript) -> Self {
        let mut spans = vec![(0, 0); transcript.entries().len()];
        let mut walked = 0;
        // Entries to enter, and entries to leave (`true`).
        let mut stack: Vec<(usize, bool)> =
            transcript.roots().into_iter().map(|root| (root, false)).collect();
        while let Some((index, leaving)) = stack.pop() {
            let Some(span) = spans.get_mut(index) else { continue };
            if leaving {
                span.1 = walked;
                continue;
            }
            walked += 1;
            span.0 = walked;
            stack.push((index, true));
            stack.extend(transcript.children(index).into_iter().map(|child| (child, false)));
        }
        Self { spans }
    }

    /// Whether `a` is an ancestor of `b`, or the same entry.
    pub(crate) fn is_ancestor(&self, a: usize, b: usize) -> bool {
        match (self.spans.get(a), self.spans.get(b)) {
            (Some(a), Some(b)) => (a.0..=a.1).contains(&b.0),
            _ => false,
        }
    }
}
