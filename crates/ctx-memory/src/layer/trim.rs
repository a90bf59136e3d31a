//! Smart trim: drops the messages least relevant to the current question.

use ctx_core::text::head_chars;
use ctx_core::{ContextView, Layer, Node, NodeState, Prepared, Result, Role, TurnContext};

use super::recall::query;
use crate::Config;
use crate::archive::text_of;
use crate::trim::{TrimRow, plan_trim};
use ctx_search::lexical::{Bm25, Delta, score};
use ctx_search::search::terms_of;

/// The number of characters read of a message: the beginning shows a long message's topic.
const READ_CHARS: usize = 4_000;

/// BM25 for whole messages (Robertson): the conventional constants.
const BM25: Bm25 = Bm25 { k1: 1.2, b: 0.75 };

const REASON: &str = "has little to do with what is being asked; it can be recalled";

/// Trims the messages least relevant to the current question, if a request is over its limit.
///
/// # Notes
///
/// It runs after compaction, because a summary keeps more of what an agent needs next than a trim,
/// and before recall, and frees the space of a block too. Trimmed messages stay trimmed. A query that
/// is too short to recall for trims nothing.
///
/// # Default
///
/// Off, with `agents.defaults.memoryContext.enabled`.
#[derive(Debug)]
pub struct Trim {
    config: Config,
}

impl Trim {
    /// The layer's name in manifests.
    pub const ID: &'static str = "memory-trim";

    /// Returns a layer that trims as configured.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self { config }
    }
}

impl Layer for Trim {
    fn id(&self) -> &'static str {
        Self::ID
    }

    fn apply(&self, view: &mut ContextView, _: Option<Prepared>, _: &TurnContext) -> Result<()> {
        let limit = view.ledger().limit();
        if view.used() <= limit {
            return Ok(());
        }
        let Some(query) = query(view)? else { return Ok(()) };
        let block = self.config.hard_cap(view.ledger().window());
        let over = view.used() - (limit - block).scale(self.config.recall.trim_to);
        let rows = rows(view, &query, self.config.recall.keep_recent as usize)?;
        for at in plan_trim(&rows, over) {
            view.drop(at, Self::ID, REASON);
        }
        Ok(())
    }
}

/// Returns the data of each message that a trim needs; `None` for dropped ones.
fn rows(view: &ContextView, query: &str, keep_recent: usize) -> Result<Vec<Option<TrimRow>>> {
    let recent = recent_from(view, keep_recent);
    let is_protected = |at: usize, node: &Node| {
        at >= recent || view.is_protected(at) || node.state() == NodeState::Inserted
    };
    let terms = terms_of(query);
    let (mut rows, mut words) = (Vec::new(), Delta::for_query(&terms));
    for (at, node) in view.nodes().iter().enumerate() {
        let protected = is_protected(at, node);
        if node.is_live() && !protected {
            let text = text_of(&*node.message()?).unwrap_or_default();
            words.add(at as u32, "", head_chars(&text, READ_CHARS));
        }
        let (tokens, group) = (node.tokens(), node.group);
        rows.push(node.is_live().then_some(TrimRow { tokens, group, protected, score: 0.0 }));
    }
    let mut scores = vec![0.0; rows.len()];
    score(&terms, &[&words], BM25, &mut scores);
    for (row, score) in rows.iter_mut().zip(scores) {
        if let Some(row) = row {
            row.score = score;
        }
    }
    Ok(rows)
}

/// Returns the position of the first recent message: the n-th last message of the user or the
/// model.
fn recent_from(view: &ContextView, keep: usize) -> usize {
    let speaks = |node: &Node| {
        node.is_live()
            && node.state() != NodeState::Inserted
            && (node.is_user() || *node.role() == Role::Assistant)
    };
    let mut spoken =
        view.nodes().iter().enumerate().rev().filter(|(_, n)| speaks(n)).map(|(at, _)| at);
    match keep.checked_sub(1) {
        None => view.len(),
        Some(n) => spoken.nth(n).unwrap_or(0),
    }
}
