//! Rule 2 when even the messages that may never be dropped do not fit: what is trimmed, and in
//! which order.

use std::collections::HashSet;

use crate::{Block, CallId, Message, Result, Tokens};

use super::shrink::{Part, shrink};
use super::{ContextView, FINISH};

const REASON: &str = "may not be dropped, and did not fit";

impl ContextView {
    /// Trims what is protected until it fits into `budget`: pinned text first, then the middle of
    /// the results in progress, then the middle of the newest user message, then the text, thinking
    /// and arguments of the call in progress; each down to a floor, then without one. What is left
    /// over after that can only be calls by the hundred: the oldest of them go, with their results.
    pub(super) fn shrink_protected(&mut self, budget: Tokens) -> Result<()> {
        let mut protected: Vec<usize> =
            (0..self.nodes.len()).filter(|&at| self.nodes[at].is_live() && self.is_protected(at)).collect();
        for floor in [Tokens(64), Tokens(1)] {
            for part in [Part::Pinned, Part::Results, Part::Newest, Part::Call] {
                let over = self.tokens_at(&protected) - budget;
                if over == Tokens::ZERO {
                    return Ok(());
                }
                let members: Vec<usize> =
                    protected.iter().copied().filter(|&at| self.part_of(at) == part).collect();
                self.shrink_all(&members, part, over, floor)?;
            }
        }
        protected.retain(|&at| self.nodes[at].is_live());
        if self.tokens_at(&protected) > budget {
            self.thin_out_calls(&protected, budget)?;
        }
        Ok(())
    }

    fn tokens_at(&self, positions: &[usize]) -> Tokens {
        Tokens::saturating_from(
            positions.iter().filter(|&&at| self.nodes[at].is_live()).map(|&at| self.nodes[at].tokens.get()).sum(),
        )
    }

    fn part_of(&self, at: usize) -> Part {
        let node = &self.nodes[at];
        if self.newest_user == Some(node.key) {
            Part::Newest
        } else if !node.facts.results.is_empty() {
            Part::Results
        } else if self.in_progress == Some(node.group) {
            Part::Call
        } else {
            Part::Pinned
        }
    }

    /// Takes `over` tokens from messages by one common cap, so that the largest give most.
    fn shrink_all(&mut self, members: &[usize], part: Part, over: Tokens, floor: Tokens) -> Result<()> {
        let sizes: Vec<Tokens> = members.iter().map(|&at| self.nodes[at].tokens).collect();
        let total: Tokens = sizes.iter().copied().sum();
        let cap = common_cap(&sizes, total - over).max(floor);
        for &at in members {
            let node = &self.nodes[at];
            let cap = Tokens(cap.0.max(floor.0.saturating_mul(node.facts.results.len() as u32)));
            if node.tokens <= cap {
                continue;
            }
            let form = shrink(&*node.message()?, cap, part, self.ledger.counter());
            if self.ledger.count(&form) < node.tokens {
                self.set_form(at, form, FINISH.into(), REASON.into());
            }
        }
        Ok(())
    }

    /// Removes the oldest parallel calls in progress and their results until the rest fits.
    fn thin_out_calls(&mut self, protected: &[usize], budget: Tokens) -> Result<()> {
        let calls: Vec<CallId> = protected
            .iter()
            .filter(|&&at| Some(self.nodes[at].group) == self.in_progress)
            .flat_map(|&at| self.nodes[at].facts.calls.to_vec())
            .collect();
        let (mut keep, mut too_many) = (0, calls.len());
        while too_many - keep > 1 {
            let middle = keep + (too_many - keep) / 2;
            let removed = removed(&calls, middle);
            let mut total = Tokens::ZERO;
            for &at in protected {
                total += self.ledger.count(&without_calls(&*self.nodes[at].message()?, &removed));
            }
            if total <= budget { keep = middle } else { too_many = middle }
        }
        let removed = removed(&calls, keep);
        for &at in protected {
            let message = self.nodes[at].message()?;
            let form = without_calls(&message, &removed);
            if form == *message {
                continue;
            }
            if form.blocks.is_empty() && !self.nodes[at].facts.results.is_empty() {
                self.drop_node(at, &FINISH.into(), &REASON.into());
            } else {
                self.nodes[at].facts = crate::Facts::of(&form);
                self.set_form(at, form, FINISH.into(), REASON.into());
            }
        }
        Ok(())
    }
}

/// All calls but the newest `keep`.
fn removed(calls: &[CallId], keep: usize) -> HashSet<CallId> {
    calls[..calls.len() - keep].iter().cloned().collect()
}

fn without_calls(message: &Message, removed: &HashSet<CallId>) -> Message {
    let mut message = message.clone();
    let had_calls = message.tool_calls().next().is_some();
    message.blocks.retain(|block| match block {
        Block::ToolCall(call) => !removed.contains(&call.id),
        Block::ToolResult(result) => !removed.contains(&result.call_id),
        _ => true,
    });
    if had_calls && message.blocks.is_empty() {
        message.blocks.push(Block::text("…"));
    }
    message
}

/// The cap `c` for which the sum of `min(size, c)` is at most `target` and as large as can be.
pub(super) fn common_cap(sizes: &[Tokens], target: Tokens) -> Tokens {
    let mut sorted: Vec<u64> = sizes.iter().map(|t| t.get()).collect();
    sorted.sort_unstable();
    let mut left = target.get();
    for (at, &size) in sorted.iter().enumerate() {
        let share = left / (sorted.len() - at) as u64;
        if size > share {
            return Tokens::saturating_from(share);
        }
        left -= size;
    }
    Tokens(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_give_most() {
        let sizes = [10, 1_000, 5_000].map(Tokens);
        assert_eq!(common_cap(&sizes, Tokens(2_010)), Tokens(1_000));
        assert_eq!(common_cap(&sizes, Tokens(1_010)), Tokens(500));
        assert_eq!(common_cap(&sizes, Tokens(9_000)), Tokens(u32::MAX));
    }
}
