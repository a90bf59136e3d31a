//! Entry ids: eight hex digits, unique within their file.

use std::collections::HashSet;

use ctx_core::{EntryId, IdSource};

/// Random ids, as used outside of tests.
#[derive(Clone, Copy, Debug, Default)]
pub struct RandomIds;

impl IdSource for RandomIds {
    fn next_id(&self) -> String {
        uuid::Uuid::new_v4().to_string()
    }
}

/// The ids in use in a file. An id of the usual form takes four bytes, so that a long session uses
/// little memory.
#[derive(Debug, Default)]
pub(super) struct UsedIds {
    usual: HashSet<u32>,
    other: HashSet<Box<str>>,
}

/// The number of attempts at a short id before a full one is used.
const TRIES: usize = 100;

impl UsedIds {
    pub(super) fn insert(&mut self, id: &str) {
        match usual(id) {
            Some(n) => self.usual.insert(n),
            None => self.other.insert(id.into()),
        };
    }

    pub(super) fn contains(&self, id: &str) -> bool {
        match usual(id) {
            Some(n) => self.usual.contains(&n),
            None => self.other.contains(id),
        }
    }

    /// Returns an unused id: the first eight digits of an id from `source`, or the full id if all
    /// tried digits are in use.
    pub(super) fn fresh(&self, source: &dyn IdSource) -> EntryId {
        let mut whole = source.next_id();
        for _ in 0..TRIES {
            let short: String = whole.chars().take(8).collect();
            if !short.is_empty() && !self.contains(&short) {
                return short.into();
            }
            whole = source.next_id();
        }
        // Reached only if the source repeats itself.
        let mut id = whole.clone();
        let mut n = 0u64;
        while id.is_empty() || self.contains(&id) {
            n += 1;
            id = format!("{whole}-{n}");
        }
        id.into()
    }
}

fn usual(id: &str) -> Option<u32> {
    let usual = id.len() == 8 && id.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    if usual { u32::from_str_radix(id, 16).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use ctx_core::SequentialIds;

    use super::*;

    struct Stuck;
    impl IdSource for Stuck {
        fn next_id(&self) -> String {
            "same".into()
        }
    }

    #[test]
    fn ids_are_unused_with_any_source() {
        for source in [&RandomIds as &dyn IdSource, &SequentialIds::default(), &Stuck] {
            let mut taken = UsedIds::default();
            for _ in 0..50 {
                let id = taken.fresh(source);
                assert!(!taken.contains(&id));
                taken.insert(&id);
            }
        }
        assert_eq!(UsedIds::default().fresh(&RandomIds).len(), 8);
    }
}
