//! Summaries, the entries that they cover, and their positions among the rows.

use std::collections::{HashMap, HashSet, VecDeque};

use ctx_engine_sdk::Row;
use serde::{Deserialize, Serialize};

use crate::said::citations;

/// Prefix of the ids of summaries, in the store and as rows.
pub(crate) const PREFIX: &str = "lossless:";

/// Prefix of the text of a summary.
pub(crate) const OPENING: &str = "[Summary ";

/// Maximum number of committed turns kept.
const COMMITTED: usize = 256;

/// A summary. Immutable.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Node {
    /// Derived from the covered messages, so that equal messages get the same id.
    pub(crate) id: String,
    /// 0 for a leaf.
    pub(crate) level: u32,
    /// The entries a leaf covers, oldest first.
    pub(crate) entries: Vec<String>,
    /// The summaries from which a higher summary is made, oldest first.
    pub(crate) children: Vec<String>,
    /// Number of messages it covers.
    pub(crate) messages: usize,
    /// The first entry it covers, in citation form.
    pub(crate) first: String,
    /// The last entry it covers, in citation form.
    pub(crate) last: String,
    /// The tokens of its text.
    pub(crate) tokens: u64,
    /// Its text in requests.
    pub(crate) text: String,
}

impl Node {
    /// Returns the text without its first line.
    pub(crate) fn body(&self) -> &str {
        self.text.split_once('\n').map_or("", |(_, body)| body)
    }

    /// Creates a node from a row whose summary is not in the store.
    fn adopted(row: &Row) -> Self {
        let text = row.text();
        let cited = citations(&text);
        let cited = |at: usize| cited.get(at).map(|(_, _, id)| (*id).to_owned());
        let level = row.id.strip_prefix(PREFIX).and_then(|id| id.split(':').next()?.parse().ok());
        let (first, last) = (cited(0).unwrap_or_default(), cited(1).unwrap_or_default());
        let (id, level, tokens) = (row.id.clone(), level.unwrap_or(0), row.tokens);
        Self { id, level, first, last, tokens, text, ..Self::default() }
    }
}

/// The position of a top-level summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    /// The summary.
    pub(crate) id: String,
    /// Its row, or the first of the rows it covers.
    pub(crate) at: usize,
    /// How it is present among the rows.
    pub(crate) standing: Standing,
}

/// How a summary is present among the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// As its own row.
    Row,
    /// Not inserted yet: the rows it covers are present.
    Originals,
    /// Inside the session's own summary, after a compaction.
    Compacted,
}

/// Summaries that did not fit with the protected rows. These summaries and their rows are absent,
/// but they belong to the branch as long as the row after them is present.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Parked {
    /// The row after them.
    pub(crate) before: String,
    /// The summaries.
    pub(crate) top: Vec<String>,
}

/// All summaries of a session.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tree {
    /// By id.
    pub(crate) nodes: HashMap<String, Node>,
    /// The summaries that no other summary covers, oldest first.
    pub(crate) top: Vec<String>,
    /// The summaries that did not fit.
    pub(crate) parked: Option<Parked>,
    /// The newest keys of committed turns.
    pub(crate) committed: VecDeque<String>,
    /// The summaries of the parent session, if this is a subagent's session.
    pub(crate) origin: Option<String>,
}

impl Tree {
    /// Records a committed turn. Returns `false` if it is already known.
    pub(crate) fn commit(&mut self, key: &str) -> bool {
        if self.committed.iter().any(|known| known == key) {
            return false;
        }
        if self.committed.len() >= COMMITTED {
            self.committed.pop_front();
        }
        self.committed.push_back(key.to_owned());
        true
    }

    /// Finds the top-level summaries among the rows, oldest first.
    ///
    /// A host may send all rows again, the rows of another branch, or the rows of a session that
    /// was compacted meanwhile. A summary that is only partly present is replaced by its children.
    /// A summary that is not present at all does not belong to this branch.
    pub(crate) fn settle(&mut self, rows: &[Row]) -> Vec<Placed> {
        let index: HashMap<&str, usize> =
            rows.iter().enumerate().map(|(at, row)| (row.id.as_str(), at)).collect();
        let compacted = compacted(rows);
        let mut placed = Vec::new();
        let mut open: Vec<String> = self.top.iter().rev().cloned().collect();
        let mut seen = HashSet::new();
        let parked = self.parked(&index);
        while let Some(id) = open.pop() {
            if !seen.insert(id.clone()) {
                continue;
            }
            let found = index.get(id.as_str()).map(|at| (*at, Standing::Row));
            let found = found.or_else(|| Some((*compacted.get(&id)?, Standing::Compacted)));
            let found = found.or_else(|| {
                let at = self.originals(&id, |entry| index.get(entry).copied())?;
                Some((at, Standing::Originals))
            });
            let found = found.or_else(|| {
                let (at, waiting) = parked.as_ref()?;
                let leaves = self.leaves(&id)?;
                let all = leaves.iter().all(|leaf| waiting.contains(&leaf.id));
                all.then_some((*at, Standing::Originals))
            });
            match (found, self.nodes.get(&id)) {
                (Some((at, standing)), Some(_)) => placed.push(Placed { id, at, standing }),
                (None, Some(node)) => open.extend(node.children.iter().rev().cloned()),
                (_, None) => {}
            }
        }
        // A summary that is missing in the store may still be present as a row.
        for (at, row) in rows.iter().enumerate() {
            if row.inserted && row.id.starts_with(PREFIX) && seen.insert(row.id.clone()) {
                self.nodes.entry(row.id.clone()).or_insert_with(|| Node::adopted(row));
                placed.push(Placed { id: row.id.clone(), at, standing: Standing::Row });
            }
        }
        placed.sort_by_key(|placed| placed.at);
        self.top = placed.iter().map(|placed| placed.id.clone()).collect();
        placed
    }

    /// Returns the leaves that did not fit, and the row after them.
    fn parked(&self, index: &HashMap<&str, usize>) -> Option<(usize, HashSet<String>)> {
        let parked = self.parked.as_ref()?;
        let at = *index.get(parked.before.as_str())?;
        let leaves = parked.top.iter().filter_map(|id| self.leaves(id)).flatten();
        Some((at, leaves.map(|leaf| leaf.id.clone()).collect()))
    }

    /// Returns the position of the first entry a summary covers, if all its entries are present.
    fn originals(&self, id: &str, at: impl Fn(&str) -> Option<usize>) -> Option<usize> {
        self.leaves(id)?.into_iter().try_fold(None, |first: Option<usize>, leaf| {
            leaf.entries.iter().try_fold(first, |first, entry| {
                let at = at(entry)?;
                Some(Some(first.map_or(at, |first| first.min(at))))
            })
        })?
    }

    /// Returns the leaves below a summary. For a leaf, returns the leaf itself. `None` if a leaf is
    /// unknown or has no entries.
    pub(crate) fn leaves(&self, id: &str) -> Option<Vec<&Node>> {
        let mut leaves = Vec::new();
        let mut open = vec![id];
        // A damaged store may contain a cycle.
        let mut steps = self.nodes.len() + 1;
        while let Some(id) = open.pop() {
            steps = steps.checked_sub(1)?;
            let node = self.nodes.get(id)?;
            match (node.children.is_empty(), node.entries.is_empty()) {
                (false, _) => open.extend(node.children.iter().rev().map(String::as_str)),
                (true, false) => leaves.push(node),
                (true, true) => return None,
            }
        }
        Some(leaves)
    }

    /// Returns the number of messages that the summaries cover.
    pub(crate) fn messages(&self) -> usize {
        self.top.iter().filter_map(|id| self.nodes.get(id)).map(|node| node.messages).sum()
    }
}

/// Returns the ids of this engine's summaries that the session's own summaries contain, with their
/// rows.
fn compacted(rows: &[Row]) -> HashMap<String, usize> {
    let mut found = HashMap::new();
    for (at, row) in rows.iter().enumerate() {
        if row.inserted || !is_summary(row) {
            continue;
        }
        for part in row.text().split(OPENING).skip(1) {
            let id = part.split([' ', '\n']).next().unwrap_or_default();
            if id.starts_with(PREFIX) {
                found.entry(id.to_owned()).or_insert(at);
            }
        }
    }
    found
}

/// Whether a row is one of the session's own summaries.
pub(crate) fn is_summary(row: &Row) -> bool {
    !matches!(row.role.as_str(), "system" | "user" | "assistant" | "toolResult")
}
