//! Rule 2: the order in which messages are truncated when even the messages that cannot be dropped
//! do not fit.

use std::collections::HashSet;

use crate::{Block, CallId, Message, RawJson, Result, Role, Tokens, ToolCall};

use super::ContextView;
use super::node::Reason;
use super::shrink::{Protection, shrink};

const REASON: &str = "cannot be dropped, and did not fit";
const TOO_MANY: &str = "too many messages that cannot be dropped: their shortest forms did not fit";

/// If every result in progress can keep this much, no call in progress is removed.
const LEAST_RESULT: Tokens = Tokens(8);

/// Nothing is truncated below this size before everything is truncated to it. If calls in progress
/// must be removed, the results of the remaining calls can keep this much.
const FAIR_FORM: Tokens = Tokens(64);

/// The minimum size of any message.
const SHORTEST_FORM: Tokens = Tokens(1);

/// The number of rounds in the search for a common cap.
const ROUNDS: u32 = 4;

impl ContextView {
    /// Truncates protected messages until they fit into `budget`: pinned text first, then the
    /// middle of the results in progress, then the middle of the newest user message, then the
    /// text, thinking and arguments of the call in progress; each down to a floor first, then
    /// without one. If there are too many calls in progress, the oldest are removed with their
    /// results; if there are too many pinned messages, the oldest are dropped.
    pub(super) fn shrink_protected(&mut self, budget: Tokens) -> Result<()> {
        let protected: Vec<usize> = (0..self.nodes.len())
            .filter(|&at| self.nodes[at].is_live() && self.is_protected(at))
            .collect();
        if self.tokens_at(&protected) <= budget {
            return Ok(());
        }
        self.thin_out_calls(&protected, budget)?;
        for (floor, rounds) in [(FAIR_FORM, ROUNDS), (SHORTEST_FORM, ROUNDS), (SHORTEST_FORM, 0)] {
            for part in
                [Protection::Pinned, Protection::Results, Protection::Newest, Protection::Call]
            {
                if self.shrink_part(&protected, part, floor, rounds, budget)? {
                    return Ok(());
                }
            }
        }
        self.shed(&protected, budget);
        Ok(())
    }

    fn tokens_at(&self, positions: &[usize]) -> Tokens {
        let live = positions.iter().map(|&at| &self.nodes[at]).filter(|n| n.is_live());
        Tokens::saturating_from(live.map(|n| n.tokens.get()).sum())
    }

    fn part_of(&self, at: usize) -> Protection {
        let node = &self.nodes[at];
        if self.is_newest_user(at) {
            Protection::Newest
        } else if !node.outline.results.is_empty() {
            Protection::Results
        } else if !node.outline.calls.is_empty() {
            Protection::Call
        } else {
            Protection::Pinned
        }
    }

    /// Truncates one part. Returns whether all protected messages fit now. If some messages cannot
    /// be cut to the common cap, the next round takes the rest from the others. With zero rounds,
    /// every message gets its shortest form.
    fn shrink_part(
        &mut self,
        protected: &[usize],
        part: Protection,
        floor: Tokens,
        rounds: u32,
        budget: Tokens,
    ) -> Result<bool> {
        let mut members = protected.to_vec();
        members.retain(|&at| self.nodes[at].is_live() && self.part_of(at) == part);
        for _ in 0..rounds.max(1) {
            let over = self.tokens_at(protected) - budget;
            if over == Tokens::ZERO {
                return Ok(true);
            }
            let over = if rounds == 0 { Tokens(u32::MAX) } else { over };
            members = self.shrink_all(&members, part, over, floor)?;
        }
        Ok(self.tokens_at(protected) <= budget)
    }

    /// Removes `over` tokens from messages by one common cap, so that the largest lose most.
    /// Returns the messages that reached the cap and could still become shorter.
    fn shrink_all(
        &mut self,
        members: &[usize],
        part: Protection,
        over: Tokens,
        floor: Tokens,
    ) -> Result<Vec<usize>> {
        let sizes: Vec<Tokens> = members.iter().map(|&at| self.nodes[at].tokens).collect();
        let total: u64 = sizes.iter().map(|t| t.get()).sum();
        let target = Tokens::saturating_from(total.saturating_sub(over.get()));
        let common = common_cap(&sizes, target).max(floor);
        let mut left = Vec::new();
        for &at in members {
            let node = &self.nodes[at];
            let results = (node.outline.results.len() as u32).max(1);
            let least = Tokens(floor.0.saturating_mul(results));
            let cap = common.max(least);
            if node.tokens > cap {
                let form = shrink(&*node.message()?, cap, part, self.ledger.counter());
                if self.ledger.count(&form) < node.tokens {
                    self.set_form(at, form, &Reason::finish(REASON));
                }
            }
            let tokens = self.nodes[at].tokens;
            if tokens > least && tokens <= cap {
                left.push(at);
            }
        }
        Ok(left)
    }

    /// Removes the oldest calls in progress and their results, if the calls plus [`LEAST_RESULT`]
    /// per result do not fit. The newest call always stays.
    fn thin_out_calls(&mut self, protected: &[usize], budget: Tokens) -> Result<()> {
        let mut calls: Vec<(CallId, Tokens)> = Vec::new();
        let mut forms: Vec<usize> = protected.to_vec();
        forms.retain(|&at| self.groups[self.nodes[at].group as usize].in_progress);
        for &at in &forms {
            if !self.nodes[at].outline.calls.is_empty() {
                let message = self.nodes[at].message()?;
                calls.extend(message.tool_calls().map(|c| (c.id.clone(), self.least(c))));
            }
        }
        let needed: u64 = calls.iter().map(|(_, least)| (*least + LEAST_RESULT).get()).sum();
        if needed <= budget.get() {
            return Ok(());
        }
        let mut room = budget.get() / 2;
        let fair = |least: Tokens| (least + FAIR_FORM).get();
        let kept = calls.iter().rev().take_while(|(_, least)| {
            let fits = room >= fair(*least);
            room = room.saturating_sub(fair(*least));
            fits
        });
        let kept = kept.count().max(1);
        let removed: HashSet<CallId> =
            calls.iter().rev().skip(kept).map(|(id, _)| id.clone()).collect();
        for at in forms {
            self.remove_calls(at, &removed)?;
        }
        Ok(())
    }

    /// Returns the minimum size of a truncated call.
    fn least(&self, call: &ToolCall) -> Tokens {
        let call = ToolCall { arguments: RawJson::from_text("{}"), ..call.clone() };
        self.ledger.count(&Message::new(Role::Assistant, vec![Block::ToolCall(call)]))
    }

    fn remove_calls(&mut self, at: usize, removed: &HashSet<CallId>) -> Result<()> {
        let outline = &self.nodes[at].outline;
        if !outline.calls.iter().chain(&outline.results).any(|id| removed.contains(id)) {
            return Ok(());
        }
        if self.forget_pointers_of(self.nodes[at].key) {
            self.restore(at);
        }
        let mut form = Message::clone(&*self.nodes[at].message()?);
        form.blocks.retain(|block| match block {
            Block::ToolCall(call) => !removed.contains(&call.id),
            Block::ToolResult(result) => !removed.contains(&result.call_id),
            _ => true,
        });
        if form.blocks.is_empty() {
            self.drop_node(at, &Reason::finish(TOO_MANY));
        } else {
            self.set_form(at, form, &Reason::finish(TOO_MANY));
        }
        Ok(())
    }

    /// Drops the oldest protected messages, as a last resort: first pinned messages, then system
    /// messages, then the call in progress, and the newest user message last.
    fn shed(&mut self, protected: &[usize], budget: Tokens) {
        let rank = |view: &Self, at: usize| {
            let node = &view.nodes[at];
            let group = &view.groups[node.group as usize];
            match view.newest_user.as_ref() {
                Some(user) if user.group == node.group => 3,
                _ if group.in_progress => 2,
                _ => u8::from(node.outline.role == Role::System),
            }
        };
        let mut order = protected.to_vec();
        order.sort_by_key(|&at| rank(self, at));
        let mut total: u64 = order
            .iter()
            .map(|&at| &self.nodes[at])
            .filter(|n| n.is_live())
            .map(|n| n.tokens.get())
            .sum();
        for at in order {
            if total <= budget.get() {
                return;
            }
            if self.nodes[at].is_live() {
                let group = self.nodes[at].group;
                total -= self.drop_group(group, &Reason::finish(TOO_MANY)).get();
            }
        }
    }
}

/// Returns the largest cap `c` for which the sum of `min(size, c)` is at most `target`.
#[must_use]
pub fn common_cap(sizes: &[Tokens], target: Tokens) -> Tokens {
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
    fn the_largest_are_cut_most() {
        let sizes = [10, 1_000, 5_000].map(Tokens);
        assert_eq!(common_cap(&sizes, Tokens(2_010)), Tokens(1_000));
        assert_eq!(common_cap(&sizes, Tokens(1_010)), Tokens(500));
        assert_eq!(common_cap(&sizes, Tokens(9_000)), Tokens(u32::MAX));
    }
}
