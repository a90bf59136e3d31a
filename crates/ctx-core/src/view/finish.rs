//! The rules that may never break, whatever layers or a foreign engine did.

use std::collections::BTreeSet;

use crate::{Edit, Result, Tokens};

use super::{ContextView, FINISH};

/// What [`ContextView::finish`] made sure of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// Tokens of the whole request, corrected by the calibration.
    pub tokens: Tokens,
    /// Tokens at its beginning that are the same as in the request before, system prompt and tool
    /// schemas included; uncorrected.
    pub unchanged_prefix: Tokens,
    /// Edits made since the `finish` before.
    pub edits: Vec<Edit>,
}

/// What was sent when `finish` was last called.
#[derive(Debug, Default)]
pub(super) struct Sent {
    /// How many of the view's nodes.
    pub(super) nodes: usize,
    /// The position from which on the view differs from it.
    pub(super) dirty: usize,
    total: u64,
    /// System prompt and tool schemas.
    fixed: (Tokens, Tokens),
    /// What an engine added to the system prompt.
    addition: Option<String>,
    /// What [`Finished::unchanged_prefix`] said.
    unchanged_prefix: Tokens,
    edits: usize,
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
        self.settle();
        self.fit()?;
        self.sent.unchanged_prefix = self.prefix();
        self.sweep();
        let edits = self.edits[self.sent.edits..].to_vec();
        self.sent.edits = self.edits.len();
        Ok(Finished { tokens: self.used(), unchanged_prefix: self.sent.unchanged_prefix, edits })
    }

    /// What [`Finished::unchanged_prefix`] said of the present request, or would say.
    pub(super) fn unchanged_prefix(&self) -> Tokens {
        let finished = self.sent.dirty >= self.nodes.len() && self.sent.nodes == self.nodes.len();
        if finished { self.sent.unchanged_prefix } else { self.prefix() }
    }

    /// Tokens at the request's beginning that are the same as when `finish` was last called.
    fn prefix(&self) -> Tokens {
        let sent = &self.sent;
        let fixed = (self.ledger.system(), self.ledger.tools());
        let same_system = fixed == sent.fixed && self.system_addition == sent.addition;
        if sent.nodes == 0 || !same_system {
            return Tokens::ZERO;
        }
        let messages = if sent.dirty >= sent.nodes {
            sent.total
        } else {
            self.nodes[..sent.dirty].iter().filter(|n| n.is_live()).map(|n| n.tokens.get()).sum()
        };
        fixed.0 + fixed.1 + Tokens::saturating_from(messages)
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
        let dirty = self.sent.dirty.min(self.nodes.len());
        if self.nodes[dirty..].iter().any(|n| !n.is_live()) {
            let mut groups = BTreeSet::new();
            for node in self.nodes.split_off(dirty) {
                if node.is_live() {
                    self.nodes.push(node);
                } else {
                    groups.insert(node.group);
                    self.gone.push(node);
                }
            }
            for group in groups {
                let mut members = std::mem::take(&mut self.groups[group as usize].members);
                members.retain(|&member| self.position(member).is_some());
                self.groups[group as usize].members = members;
            }
        }
        self.sent.nodes = self.nodes.len();
        self.sent.dirty = self.sent.nodes;
        self.sent.total = self.total;
        self.sent.fixed = (self.ledger.system(), self.ledger.tools());
        self.sent.addition.clone_from(&self.system_addition);
    }
}
