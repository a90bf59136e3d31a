//! Scores the messages of a view against a query and chooses which to trim.

use std::collections::HashMap;

use ctx_core::text::head_chars;
use ctx_core::{ContextView, EntryId, Message, Node, NodeState, Result, Role, Tokens};

use crate::trim::{TrimReason, TrimRow, plan_trim};
use ctx_search::block::is_recalled;
use ctx_search::lexical::{Bm25, Delta, score};
use ctx_search::search::terms_of;

/// The number of characters read of a message: the beginning shows a long message's topic.
const READ_CHARS: usize = 4_000;

/// BM25 for whole messages (Robertson): the conventional constants.
const BM25: Bm25 = Bm25 { k1: 1.2, b: 0.75 };

/// The words of the messages of a view. Each message is read once, when it is first needed.
#[derive(Debug, Default)]
pub(super) struct Index {
    words: Delta,
    ordinals: HashMap<EntryId, u32>,
    /// Messages before this position have been read, unless they are not worth indexing.
    seen: usize,
}

impl Index {
    /// Reads up to `most` unread messages of the view, so that a trim need not read all of them at
    /// once.
    pub(super) fn learn(&mut self, view: &ContextView, most: usize) -> Result<()> {
        let nodes = view.nodes();
        let mut read = 0;
        while read < most
            && let Some(node) = nodes.get(self.seen)
        {
            if node.is_live() && node.state() != NodeState::Inserted {
                self.add(node)?;
                read += 1;
            }
            self.seen += 1;
        }
        Ok(())
    }

    /// Returns the positions of the messages to trim so that `over` tokens are freed.
    pub(super) fn plan(
        &mut self,
        view: &ContextView,
        query: &str,
        over: Tokens,
        keep_recent: usize,
    ) -> Result<Vec<(usize, TrimReason)>> {
        let recent = recent_from(view, keep_recent);
        let free = |at: usize, node: &Node| {
            at < recent && !view.is_protected(at) && node.state() != NodeState::Inserted
        };
        for (at, node) in view.nodes().iter().enumerate() {
            if node.is_live() && free(at, node) {
                self.add(node)?;
            }
        }
        let scores = self.scores(query);
        let rows: Vec<Option<TrimRow>> = view
            .nodes()
            .iter()
            .enumerate()
            .map(|(at, node)| {
                let ordinal = self.ordinals.get(node.entry().id());
                let score = ordinal.and_then(|&n| scores.get(n as usize)).copied();
                node.is_live().then(|| TrimRow {
                    tokens: node.tokens(),
                    group: node.group,
                    protected: !free(at, node),
                    score: score.unwrap_or_default(),
                })
            })
            .collect();
        Ok(plan_trim(&rows, over))
    }

    fn add(&mut self, node: &Node) -> Result<()> {
        let id = node.entry().id();
        if self.ordinals.contains_key(id) {
            return Ok(());
        }
        let ordinal = self.ordinals.len() as u32;
        self.words.add(ordinal, "", &text_of(&*node.message()?));
        self.ordinals.insert(id.clone(), ordinal);
        Ok(())
    }

    fn scores(&self, query: &str) -> Vec<f32> {
        let mut scores = vec![0.0; self.ordinals.len()];
        score(&terms_of(query), &[&self.words], BM25, &mut scores);
        scores
    }
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

/// Returns the words of a message: its text, tool calls and tool results.
fn text_of(message: &Message) -> String {
    let mut text = message.plain_text();
    for call in message.tool_calls() {
        text.push('\n');
        text.push_str(&call.name);
        text.push(' ');
        text.push_str(call.arguments.as_str());
    }
    for result in message.tool_results() {
        text.push('\n');
        text.push_str(&result.plain_text());
    }
    if is_recalled(&text) {
        return String::new();
    }
    text.truncate(head_chars(&text, READ_CHARS).len());
    text
}
