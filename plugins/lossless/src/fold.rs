//! Folds rows into leaves and several summaries into one, and makes the plan for the host.

use std::collections::{HashMap, HashSet};

use ctx_engine_sdk::{Insertion, Plan, Result, Row};

use crate::config::Sizes;
use crate::tree::{Node, Placed, Standing, Tree, is_summary};
use crate::write::{Writer, parent_id};

/// What to do with rows whose tokens are too few for a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// Keep them until there are more.
    Stays,
    /// Make them a leaf, if that is smaller.
    Leaf,
    /// Make them a leaf, together with the session's own summaries. No row before the cut stays.
    Folded,
}

/// A fold in progress: the rows, and the summaries among them.
pub(crate) struct Fold<'r> {
    rows: &'r [Row],
    placed: Vec<Placed>,
    /// Rows covered by a summary.
    covered: Vec<bool>,
    /// Rows to drop.
    dropped: Vec<bool>,
}

impl<'r> Fold<'r> {
    /// Starts from the current rows.
    pub(crate) fn of(tree: &mut Tree, rows: &'r [Row]) -> Self {
        let placed = tree.settle(rows);
        let nothing = vec![false; rows.len()];
        let mut fold = Self { rows, placed, covered: nothing.clone(), dropped: nothing };
        let originals: Vec<&str> = fold
            .placed
            .iter()
            .filter(|placed| placed.standing == Standing::Originals)
            .filter_map(|placed| tree.leaves(&placed.id))
            .flatten()
            .flat_map(|leaf| leaf.entries.iter().map(String::as_str))
            .collect();
        if !originals.is_empty() {
            let index: HashMap<&str, usize> =
                rows.iter().enumerate().map(|(at, row)| (row.id.as_str(), at)).collect();
            for at in originals.iter().filter_map(|entry| index.get(entry)) {
                fold.covered[*at] = true;
            }
            fold.drop_covered();
        }
        fold
    }

    /// Returns the tokens of the request.
    pub(crate) fn tokens(&self, tree: &Tree) -> u64 {
        let rows = self.rows.iter().zip(&self.dropped).filter(|(_, dropped)| !**dropped);
        let rows: u64 = rows.map(|(row, _)| row.tokens).fold(0, u64::saturating_add);
        let new = self.placed.iter().filter(|placed| placed.standing == Standing::Originals);
        rows.saturating_add(new.map(|placed| tokens_of(tree, &placed.id)).sum())
    }

    /// Returns the tokens of the summaries that this engine can fold further.
    pub(crate) fn summaries(&self, tree: &Tree) -> u64 {
        let free = self.placed.iter().filter(|placed| placed.standing != Standing::Compacted);
        free.map(|placed| tokens_of(tree, &placed.id)).sum()
    }

    /// Returns the start of the newest rows that together have at most `tokens`, at least one row.
    pub(crate) fn tail(&self, tokens: u64) -> usize {
        let mut left = tokens;
        let mut at = self.rows.len();
        for (place, row) in self.rows.iter().enumerate().rev() {
            match left.checked_sub(row.tokens) {
                Some(rest) => (left, at) = (rest, place),
                None => break,
            }
        }
        at.min(self.rows.len().saturating_sub(1))
    }

    /// Folds the complete groups before `until` into leaves, and leaves into higher summaries.
    pub(crate) fn fold(
        &mut self,
        tree: &mut Tree,
        until: usize,
        rest: Rest,
        sizes: &Sizes,
        fanout: usize,
        writer: &mut Writer<'_, '_>,
    ) -> Result<()> {
        // The number of later rows of each group; `None` for a group that cannot be folded.
        let mut open: HashMap<u64, Option<usize>> = HashMap::new();
        for (at, row) in self.rows.iter().enumerate() {
            let may = at < until && !self.covered[at] && self.may_fold(at, rest);
            let count = open.entry(row.group).or_insert(Some(0));
            *count = count.filter(|_| may).map(|count| count + 1);
        }
        let (mut leaf, mut tokens) = (Vec::new(), 0u64);
        // The groups that are only partly in the leaf so far.
        let mut begun = HashSet::new();
        for at in 0..until.min(self.rows.len()) {
            let row = &self.rows[at];
            let Some(Some(left)) = open.get_mut(&row.group) else { continue };
            *left = left.saturating_sub(1);
            match left {
                0 => begun.remove(&row.group),
                _ => begun.insert(row.group),
            };
            leaf.push(at);
            tokens = tokens.saturating_add(row.tokens);
            if begun.is_empty() && tokens >= sizes.leaf {
                self.add_leaf(tree, &leaf, tokens, rest, sizes, writer)?;
                self.merge_levels(tree, sizes, fanout, writer)?;
                (leaf, tokens) = (Vec::new(), 0);
            }
        }
        if !leaf.is_empty() && (rest != Rest::Stays || tokens >= sizes.leaf / 2) {
            self.add_leaf(tree, &leaf, tokens, rest, sizes, writer)?;
            self.merge_levels(tree, sizes, fanout, writer)?;
        }
        self.drop_covered();
        Ok(())
    }

    /// Folds the oldest summaries until all of them have at most `tokens` together.
    pub(crate) fn merge_until(
        &mut self,
        tree: &mut Tree,
        tokens: u64,
        sizes: &Sizes,
        fanout: usize,
        writer: &mut Writer<'_, '_>,
    ) -> Result<()> {
        loop {
            let first = self.placed.partition_point(|p| p.standing == Standing::Compacted);
            let free = self.placed.len() - first;
            if self.summaries(tree) <= tokens || free < 2 {
                return Ok(());
            }
            let count = fanout.min(free);
            self.merge(tree, first, count, sizes.summary, writer)?;
        }
    }

    /// Folds all summaries before row `cut` into one, and returns its id.
    pub(crate) fn merge_all(
        &mut self,
        tree: &mut Tree,
        cut: usize,
        sizes: &Sizes,
        fanout: usize,
        writer: &mut Writer<'_, '_>,
    ) -> Result<Option<String>> {
        loop {
            let count = self.placed.partition_point(|placed| placed.at < cut);
            if count < 2 {
                break;
            }
            // Rounds are completed, so that each summary is read once per round.
            let tokens = if count <= fanout { sizes.root } else { sizes.summary };
            for run in 0..count.div_ceil(fanout) {
                let size = fanout.min(count - run * fanout);
                if size > 1 {
                    self.merge(tree, run, size, tokens, writer)?;
                }
            }
        }
        let root = self.placed.first().filter(|placed| placed.at < cut);
        Ok(root.filter(|root| root.standing != Standing::Compacted).map(|root| root.id.clone()))
    }

    /// Returns the current top-level summaries.
    pub(crate) fn top(&self) -> Vec<String> {
        self.placed.iter().map(|placed| placed.id.clone()).collect()
    }

    /// Returns the plan for the host.
    pub(crate) fn plan(&self, tree: &Tree) -> Plan {
        let mut plan = Plan::default();
        let mut before = vec![None; self.rows.len() + 1];
        for at in (0..self.rows.len()).rev() {
            before[at] = if self.dropped[at] { before[at + 1] } else { Some(at) };
        }
        let dropped = self.rows.iter().zip(&self.dropped).filter(|(_, dropped)| **dropped);
        plan.drop = dropped.map(|(row, _)| row.id.clone()).collect();
        for placed in self.placed.iter().filter(|p| p.standing == Standing::Originals) {
            let Some(node) = tree.nodes.get(&placed.id) else { continue };
            let before = before.get(placed.at).copied().flatten().and_then(|at| self.rows.get(at));
            plan.insert.push(Insertion {
                id: node.id.clone(),
                before: before.map(|row| row.id.clone()),
                role: Some("user".into()),
                text: node.text.clone(),
            });
        }
        if !plan.is_empty() {
            plan.reason = Some("folded into summaries".into());
        }
        plan
    }

    fn may_fold(&self, at: usize, rest: Rest) -> bool {
        let row = &self.rows[at];
        if row.inserted || row.role == "system" {
            return false;
        }
        let is_compacted =
            || self.placed.iter().any(|p| p.at == at && p.standing == Standing::Compacted);
        !row.keep || (rest == Rest::Folded && is_summary(row) && !is_compacted())
    }

    fn add_leaf(
        &mut self,
        tree: &mut Tree,
        leaf: &[usize],
        tokens: u64,
        rest: Rest,
        sizes: &Sizes,
        writer: &mut Writer<'_, '_>,
    ) -> Result<()> {
        writer.check_cancelled()?;
        let rows: Vec<&Row> = leaf.iter().map(|at| &self.rows[*at]).collect();
        let node = writer.leaf(&rows, sizes.summary, usize::from(rest == Rest::Folded))?;
        if node.tokens >= tokens && rest != Rest::Folded {
            return Ok(());
        }
        for at in leaf {
            self.covered[*at] = true;
        }
        let at = leaf.first().copied().unwrap_or(0);
        let place = self.placed.partition_point(|placed| placed.at <= at);
        let placed = Placed { id: node.id.clone(), at, standing: Standing::Originals };
        self.placed.insert(place, placed);
        tree.nodes.insert(node.id.clone(), node);
        Ok(())
    }

    /// If more than `fanout` summaries of a level are adjacent, folds the oldest of them into one.
    pub(crate) fn merge_levels(
        &mut self,
        tree: &mut Tree,
        sizes: &Sizes,
        fanout: usize,
        writer: &mut Writer<'_, '_>,
    ) -> Result<()> {
        let mut start = 0;
        while start < self.placed.len() {
            let level = |placed: &Placed| match placed.standing {
                Standing::Compacted => None,
                _ => tree.nodes.get(&placed.id).map(|node| node.level),
            };
            let first = level(&self.placed[start]);
            let run = self.placed[start..].iter().take_while(|p| level(p) == first).count();
            if first.is_some() && run > fanout {
                self.merge(tree, start, fanout, sizes.summary, writer)?;
                // The next level, with the new summary, may have too many now.
                start = 0;
            } else {
                start += run;
            }
        }
        Ok(())
    }

    fn merge(
        &mut self,
        tree: &mut Tree,
        first: usize,
        count: usize,
        tokens: u64,
        writer: &mut Writer<'_, '_>,
    ) -> Result<()> {
        writer.check_cancelled()?;
        let merged = first..first + count;
        let children: Vec<&Node> =
            self.placed[merged.clone()].iter().filter_map(|p| tree.nodes.get(&p.id)).collect();
        // The summary exists already if the host rejected the answer that contained it.
        let known = tree.nodes.get(&parent_id(&children));
        let node = match known {
            Some(known) => known.clone(),
            None => writer.parent(&children, tokens)?,
        };
        let at = self.placed[first].at;
        for placed in &self.placed[merged.clone()] {
            if placed.standing == Standing::Row {
                self.dropped[placed.at] = true;
            }
        }
        let placed = Placed { id: node.id.clone(), at, standing: Standing::Originals };
        self.placed.splice(merged, [placed]);
        tree.nodes.insert(node.id.clone(), node);
        Ok(())
    }

    /// Drops the rows covered by summaries, whole groups only.
    fn drop_covered(&mut self) {
        let mut whole: HashMap<u64, bool> = HashMap::new();
        for (row, covered) in self.rows.iter().zip(&self.covered) {
            *whole.entry(row.group).or_insert(true) &= *covered && !row.keep;
        }
        for (at, row) in self.rows.iter().enumerate() {
            self.dropped[at] |= self.covered[at] && whole.get(&row.group) == Some(&true);
        }
    }
}

fn tokens_of(tree: &Tree, id: &str) -> u64 {
    tree.nodes.get(id).map_or(0, |node| node.tokens)
}
