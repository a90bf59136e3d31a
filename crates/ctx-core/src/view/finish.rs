//! The invariants of a request, which hold after any edits by layers or an external engine.

use std::collections::BTreeSet;

use crate::{Edit, Result, Tokens};

use super::{ContextView, FINISH};

/// The result of [`ContextView::finish`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// Tokens of the whole request, corrected by the calibration.
    pub tokens: Tokens,
    /// Tokens at its beginning that are identical to the previous request, including system prompt
    /// and tool schemas; uncorrected.
    pub unchanged_prefix: Tokens,
    /// Edits since the previous `finish`.
    pub edits: Vec<Edit>,
}

/// The state sent at the last `finish`.
#[derive(Debug, Default)]
pub(super) struct Sent {
    /// The number of the view's nodes.
    pub(super) nodes: usize,
    /// The position from which on the view differs.
    pub(super) dirty: usize,
    total: u64,
    /// System prompt and tool schemas.
    fixed: (Tokens, Tokens),
    /// The engine's addition to the system prompt.
    addition: Option<String>,
    /// The last value of [`Finished::unchanged_prefix`].
    unchanged_prefix: Tokens,
    edits: usize,
}

impl ContextView {
    /// Enforces the four rules, and returns the size of the request.
    ///
    /// 1. A tool call and its results are kept or dropped together; a call without a result gets a
    ///    synthetic error result.
    /// 2. System prompt, pinned messages, the newest user message and the tool call in progress are
    ///    always present, truncated if necessary.
    /// 3. The request fits window minus reserve: the oldest messages are dropped first.
    /// 4. A form that was sent is sent again: the view keeps its edits.
    ///
    /// A second call without changes in between changes nothing.
    ///
    /// # Errors
    ///
    /// [`SystemPromptTooLarge`](crate::ErrorKind::SystemPromptTooLarge) if the fixed part is too
    /// large, and errors from reading a lazy message. No list of messages is refused.
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

    /// Returns [`Finished::unchanged_prefix`] of the current request, finished or not.
    pub(super) fn unchanged_prefix(&self) -> Tokens {
        let finished = self.sent.dirty >= self.nodes.len() && self.sent.nodes == self.nodes.len();
        if finished { self.sent.unchanged_prefix } else { self.prefix() }
    }

    /// Returns the tokens at the beginning that are unchanged since the last `finish`.
    fn prefix(&self) -> Tokens {
        let sent = &self.sent;
        let fixed = (self.ledger.system(), self.ledger.tools);
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
        // A drop may restore a message that points to the dropped one: see `pointers`.
        let mut pointers = usize::MAX;
        while self.total() > budget && self.pointers.len() < pointers {
            pointers = self.pointers.len();
            self.shrink_protected(budget)?;
            let mut at = 0;
            while self.total() > budget && at < self.nodes.len() {
                if self.nodes[at].is_live() {
                    self.drop(at, FINISH, "oldest, and the request did not fit");
                }
                at += 1;
            }
        }
        Ok(())
    }

    /// Moves dropped nodes to `dropped` and records the current state as sent.
    fn sweep(&mut self) {
        let dirty = self.sent.dirty.min(self.nodes.len());
        if self.nodes[dirty..].iter().any(|n| !n.is_live()) {
            let mut groups = BTreeSet::new();
            for node in self.nodes.split_off(dirty) {
                if node.is_live() {
                    self.nodes.push(node);
                } else {
                    groups.insert(node.group);
                    self.dropped.push(node);
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
        self.sent.fixed = (self.ledger.system(), self.ledger.tools);
        self.sent.addition.clone_from(&self.system_addition);
    }
}
