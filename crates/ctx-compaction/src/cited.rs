//! Entries as a summary cites them: long ids by their beginning.

use std::collections::HashSet;

use ctx_core::EntryId;

/// The least that is left of a long id. It is what most of them need to be told apart.
const LEAST_CHARS: usize = 8;

/// Ids up to this length are cited in full.
const SHORT_CHARS: usize = 12;

/// How ids of one history are cited. A UUID in full costs a summary a dozen tokens a line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cited {
    chars: usize,
}

impl Cited {
    /// The shortest beginnings that tell all of these ids apart.
    pub(crate) fn of<'a>(ids: impl Iterator<Item = &'a EntryId> + Clone) -> Self {
        let long = ids.filter(|id| id.len() > SHORT_CHARS && id.is_ascii());
        let longest = long.clone().map(|id| id.len()).max().unwrap_or(0);
        let tells_apart = |chars: &usize| {
            let mut seen = HashSet::new();
            long.clone().all(|id| seen.insert(id.get(..*chars).unwrap_or(id)))
        };
        // In steps of a group of digits, so that adversarial ids cost a few passes and no more.
        let chars = (LEAST_CHARS..longest).step_by(4).find(tells_apart).unwrap_or(usize::MAX);
        Self { chars }
    }

    /// The id as it is cited.
    pub(crate) fn short(self, id: &EntryId) -> EntryId {
        match id.get(..self.chars) {
            Some(short) if id.len() > SHORT_CHARS && id.is_ascii() => {
                short.trim_end_matches('-').into()
            }
            _ => id.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cited(ids: &[&str]) -> Vec<EntryId> {
        let ids: Vec<EntryId> = ids.iter().map(|&id| id.into()).collect();
        let cited = Cited::of(ids.iter());
        ids.iter().map(|id| cited.short(id)).collect()
    }

    #[test]
    fn long_ids_are_cited_by_what_tells_them_apart() {
        let v4 = ["80d3b701-2d53-4f14-aaff-43bcf8c43c47", "5f778de8-83d5-48de-b83e-ef71ff2f0288"];
        assert_eq!(cited(&v4).iter().map(|id| &**id).collect::<Vec<_>>(), ["80d3b701", "5f778de8"]);
        // Ids made within the same second begin alike.
        let v7 = ["019a0d3c-9d53-7f14-aaff-43bcf8c43c47", "019a0d3c-aad5-78de-b83e-ef71ff2f0288"];
        let short: Vec<_> = cited(&v7).iter().map(ToString::to_string).collect();
        assert_eq!(short, ["019a0d3c-9d5", "019a0d3c-aad"]);
    }

    #[test]
    fn short_and_strange_ids_stay() {
        let ids = ["0000000a", "a", "eine-kennung-mit-ü-und-mehr-text", "toolu_01", "x\u{1f600}"];
        assert_eq!(cited(&ids).iter().map(|id| &**id).collect::<Vec<_>>(), ids);
    }
}
