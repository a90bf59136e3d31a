//! Finding lines that cite erased messages.

use std::collections::HashSet;

use ctx_core::EntryId;

/// The ids of erased entries, sorted. A citation, `[e:ID]`, may name a prefix of a long id.
pub(crate) struct CitedEntries<'a>(Vec<&'a str>);

impl<'a> CitedEntries<'a> {
    pub(crate) fn of(entries: &'a HashSet<EntryId>) -> Self {
        let mut ids: Vec<&str> = entries.iter().map(|id| &**id).collect();
        ids.sort_unstable();
        Self(ids)
    }

    /// Whether a text cites one of them.
    pub(crate) fn in_text(&self, text: &str) -> bool {
        let mut rest = text;
        while let Some((_, after)) = rest.split_once("[e:") {
            let (inside, next) = after.split_once(']').unwrap_or((after, ""));
            let ids = inside.split([',', ' ']).map(|id| id.trim().trim_start_matches("e:"));
            if ids.filter(|id| !id.is_empty()).any(|id| self.begins(id)) {
                return true;
            }
            rest = next;
        }
        false
    }

    fn begins(&self, id: &str) -> bool {
        let at = self.0.partition_point(|known| *known < id);
        self.0.get(at).is_some_and(|known| known.starts_with(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_cited_by_its_id_or_a_prefix_alone_or_in_a_list() {
        let ids = ["0ec39323-aaaa", "b7"].map(EntryId::from).into_iter().collect();
        let cited = CitedEntries::of(&ids);
        for text in ["x [e:0ec39323]", "[e:b7] y", "a [e:1, e:b7]", "a [e:1][e:b7]", "[e:b7"] {
            assert!(cited.in_text(text), "{text}");
        }
        for text in ["", "b7", "[e:b77]", "[e:]", "[e:, ]", "[e:0ec39324]", "e:b7"] {
            assert!(!cited.in_text(text), "{text}");
        }
    }
}
