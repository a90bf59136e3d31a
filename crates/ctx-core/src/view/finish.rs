//! The rules that may never break, whatever layers or a foreign engine did.

use crate::{Edit, Result, Tokens};

use super::{ContextView, FINISH, Node};

/// What [`ContextView::finish`] made sure of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// Tokens of the whole request, corrected by the calibration.
    pub tokens: Tokens,
    /// Tokens at its beginning that are the same as in the request before, system prompt and tool
    /// schemas included.
    pub unchanged_prefix: Tokens,
    /// Edits made since the `finish` before.
    pub edits: Vec<Edit>,
}

impl ContextView {
    /// Keeps the four rules, and hands out what the request measures.
    ///
    /// 1. A tool call and its results stay together, or go together; a call without a result gets
    ///    a synthetic error result.
    /// 2. System prompt, pinned messages, the newest user message and the tool call in progress
    ///    are there, trimmed if they must be.
    /// 3. The request is inside window minus reserve: the oldest messages go first.
    /// 4. A form once sent is sent again: the view keeps its edits.
    ///
    /// A second call without changes in between changes nothing.
    ///
    /// # Errors
    ///
    /// [`SystemPromptTooLarge`](crate::ErrorKind::SystemPromptTooLarge) when the fixed part leaves
    /// no room, and what reading a lazy message may give. No list of messages is refused.
    pub fn finish(&mut self) -> Result<Finished> {
        self.ledger.check()?;
        self.settle_open_calls()?;
        self.fit()?;
        let unchanged_prefix = self.unchanged_prefix();
        self.sweep();
        let edits = self.edits[self.edits_finished..].to_vec();
        self.edits_finished = self.edits.len();
        Ok(Finished { tokens: self.used(), unchanged_prefix, edits })
    }

    /// Tokens at the request's beginning that are the same as when `finish` was last called.
    pub(super) fn unchanged_prefix(&self) -> Tokens {
        if self.sent == 0 {
            return Tokens::ZERO;
        }
        let messages = if self.dirty >= self.sent {
            self.sent_total
        } else {
            self.nodes[..self.dirty].iter().filter(|n| n.is_live()).map(|n| n.tokens.get()).sum()
        };
        self.ledger.system() + self.ledger.tools() + Tokens::saturating_from(messages)
    }

    fn fit(&mut self) -> Result<()> {
        let budget = self.ledger.budget();
        if self.total() <= budget {
            return Ok(());
        }
        self.shrink_protected(budget)?;
        let mut at = 0;
        while self.total() > budget && at < self.nodes.len() {
            if self.nodes[at].is_live() {
                self.drop(at, FINISH, "oldest, and the request did not fit");
            }
            at += 1;
        }
        Ok(())
    }

    /// Moves dropped nodes out of the way and takes the present state as sent.
    fn sweep(&mut self) {
        if self.dirty < self.nodes.len() && self.nodes[self.dirty..].iter().any(|n| !n.is_live()) {
            let (live, gone): (Vec<_>, Vec<_>) =
                std::mem::take(&mut self.nodes).into_iter().partition(Node::is_live);
            self.nodes = live;
            for node in gone {
                self.group_sizes[node.group as usize] -= 1;
                self.gone.push(node);
            }
        }
        self.sent = self.nodes.len();
        self.sent_total = self.total;
        self.dirty = self.sent;
    }
}
