//! Summaries, what they stand for, and which of them stand among the rows.

use std::collections::{HashMap, HashSet, VecDeque};

use ctx_engine_sdk::Row;
use serde::{Deserialize, Serialize};

use crate::said::citations;

/// How the ids of summaries begin, also as rows.
pub(crate) const PREFIX: &str = "lossless:";

/// How the text of a summary begins.
pub(crate) const OPENING: &str = "[Summary ";

/// How many committed turns are remembered.
const COMMITTED: usize = 256;

/// A summary. It never changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Node {
    /// Made of what it stands for, so that the same fold has the same id.
    pub(crate) id: String,
    /// 0 for a leaf.
    pub(crate) level: u32,
    /// The entries a leaf stands for, oldest first.
    pub(crate) entries: Vec<String>,
    /// The summaries that others are made of, oldest first.
    pub(crate) children: Vec<String>,
    /// How many messages it stands for.
    pub(crate) messages: usize,
    /// The first entry it stands for, as it is cited.
    pub(crate) first: String,
    /// The last one.
    pub(crate) last: String,
    /// What its text measures.
    pub(crate) tokens: u64,
    /// Its text, as it goes out.
    pub(crate) text: String,
}

impl Node {
    /// The text without its first line.
    pub(crate) fn body(&self) -> &str {
        self.text.split_once('\n').map_or("", |(_, body)| body)
    }

    /// What a row says of itself whose summary is not in the store.
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

/// Where a summary of the top stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    /// The summary.
    pub(crate) id: String,
    /// The row it is, or the first of the rows it stands for.
    pub(crate) at: usize,
    /// How it is there.
    pub(crate) standing: Standing,
}

/// How a summary is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// As a row of its own.
    Row,
    /// Not yet: what it stands for is.
    Originals,
    /// Inside of the session's own summary, after a compaction.
    Compacted,
}

/// Summaries that had no room beside what must stay. They are not among the rows, and nothing they
/// stand for is; yet the branch is theirs, as long as the row is there that they stood before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Parked {
    /// The row.
    pub(crate) before: String,
    /// The summaries.
    pub(crate) top: Vec<String>,
}

/// All summaries of a session.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tree {
    /// By id.
    pub(crate) nodes: HashMap<String, Node>,
    /// Those that no other stands for, oldest first.
    pub(crate) top: Vec<String>,
    /// Those that wait for room.
    pub(crate) parked: Option<Parked>,
    /// The newest keys of committed turns.
    pub(crate) committed: VecDeque<String>,
    /// What the session that started this one said, where it is a subagent's.
    pub(crate) origin: Option<String>,
}

impl Tree {
    /// Takes note of a committed turn. `false` if it is known.
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

    /// Finds the top among the rows, oldest first.
    ///
    /// A host may tell of all rows again, of a branch that leaves the session somewhere, or of a
    /// session that was compacted meanwhile. A summary of which only a part is there is taken apart
    /// into those it is made of; one of which nothing is there is none of this branch.
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
        // What a store has lost is still there as a row.
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

    /// The leaves that wait for room, and the row they stood before.
    fn parked(&self, index: &HashMap<&str, usize>) -> Option<(usize, HashSet<String>)> {
        let parked = self.parked.as_ref()?;
        let at = *index.get(parked.before.as_str())?;
        let leaves = parked.top.iter().filter_map(|id| self.leaves(id)).flatten();
        Some((at, leaves.map(|leaf| leaf.id.clone()).collect()))
    }

    /// The first of all originals of a summary, if all are there.
    fn originals(&self, id: &str, at: impl Fn(&str) -> Option<usize>) -> Option<usize> {
        self.leaves(id)?.into_iter().try_fold(None, |first: Option<usize>, leaf| {
            leaf.entries.iter().try_fold(first, |first, entry| {
                let at = at(entry)?;
                Some(Some(first.map_or(at, |first| first.min(at))))
            })
        })?
    }

    /// The leaves below a summary, or itself; `None` if one is not known or names no entries.
    pub(crate) fn leaves(&self, id: &str) -> Option<Vec<&Node>> {
        let mut leaves = Vec::new();
        let mut open = vec![id];
        // A damaged store may hold a circle.
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

    /// How many messages the top stands for.
    pub(crate) fn messages(&self) -> usize {
        self.top.iter().filter_map(|id| self.nodes.get(id)).map(|node| node.messages).sum()
    }
}

/// The summaries that went into summaries of the session, by id, with the row they are in.
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

/// Whether a row stands for history.
pub(crate) fn is_summary(row: &Row) -> bool {
    !matches!(row.role.as_str(), "system" | "user" | "assistant" | "toolResult")
}
