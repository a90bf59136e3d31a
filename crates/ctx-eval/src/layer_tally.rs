//! Counts the edits of each layer.

use std::collections::{BTreeMap, HashSet};

use ctx_core::{Action, Edit, EntryId};

use crate::LayerTotals;

/// The edits of the layers so far. A message that one layer truncates repeatedly counts once.
#[derive(Debug, Default)]
pub(crate) struct LayerTally {
    layers: BTreeMap<String, LayerCounts>,
}

#[derive(Debug, Default)]
struct LayerCounts {
    totals: LayerTotals,
    seen: HashSet<(Action, EntryId)>,
}

impl LayerTally {
    /// Counts an edit. Returns whether its layer did this to the message for the first time.
    pub(crate) fn add(&mut self, edit: &Edit) -> bool {
        let layer = self.layers.entry(edit.layer.to_string()).or_default();
        let totals = &mut layer.totals;
        totals.tokens_removed += i64::from(edit.before.0) - i64::from(edit.after.0);
        // A summary that a later summary replaces is not a message of the session.
        let own = (Action::Insert, edit.entry.clone());
        if edit.action == Action::Drop && layer.seen.contains(&own) {
            return false;
        }
        let messages = match edit.action {
            Action::Drop => &mut totals.dropped,
            Action::Replace => &mut totals.replaced,
            Action::Insert => &mut totals.inserted,
            Action::Pin | Action::Move => return false,
        };
        let first = layer.seen.insert((edit.action, edit.entry.clone()));
        *messages += u32::from(first);
        first
    }

    pub(crate) fn totals(self) -> BTreeMap<String, LayerTotals> {
        self.layers.into_iter().map(|(name, layer)| (name, layer.totals)).collect()
    }
}

#[cfg(test)]
mod tests {
    use ctx_core::Tokens;

    use super::*;

    fn edit(layer: &'static str, entry: &str, action: Action, sizes: (u32, u32)) -> Edit {
        Edit {
            entry: entry.into(),
            layer: layer.into(),
            action,
            before: Tokens(sizes.0),
            after: Tokens(sizes.1),
            reason: "".into(),
        }
    }

    #[test]
    fn each_message_counts_once_however_many_edits_it_has() {
        let mut tally = LayerTally::default();
        for edit in [
            edit("a", "1", Action::Replace, (100, 80)),
            edit("a", "1", Action::Replace, (80, 50)),
            edit("a", "1", Action::Replace, (50, 20)),
            edit("a", "2", Action::Replace, (100, 20)),
            edit("a", "1", Action::Drop, (20, 0)),
            edit("a", "3", Action::Insert, (0, 30)),
            edit("b", "1", Action::Replace, (20, 10)),
            edit("b", "1", Action::Pin, (10, 10)),
            edit("c", "1", Action::Move, (10, 10)),
        ] {
            tally.add(&edit);
        }
        let totals = |dropped, replaced, inserted, tokens_removed| LayerTotals {
            dropped,
            replaced,
            inserted,
            tokens_removed,
        };
        let expected =
            [("a", totals(1, 2, 1, 150)), ("b", totals(0, 1, 0, 10)), ("c", totals(0, 0, 0, 0))];
        assert_eq!(tally.totals(), expected.map(|(name, t)| (name.to_owned(), t)).into());
    }
}
