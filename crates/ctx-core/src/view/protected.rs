//! Rule 2 when even the messages that may never be dropped do not fit: what is trimmed, and in
//! which order.

use std::collections::HashSet;

use crate::{Block, CallId, Message, RawJson, Result, Role, Tokens, ToolCall};

use super::ContextView;
use super::node::Why;
use super::shrink::{Part, shrink};

const REASON: &str = "may not be dropped, and did not fit";
const TOO_MANY: &str = "too many messages that may not be dropped: the shortest forms did not fit";

/// Where every result in progress can keep this much, no call in progress is taken out.
const LEAST_RESULT: Tokens = Tokens(8);

/// Nothing is cut shorter than this before everything is cut to it. Where calls in progress must be
/// taken out, the results of those that stay have room for as much.
const FAIR_FORM: Tokens = Tokens(64);

/// A message that is there at all.
const SHORTEST_FORM: Tokens = Tokens(1);

/// How often a common cap is looked for.
const ROUNDS: u32 = 4;

impl ContextView {
    /// Trims what is protected until it fits into `budget`: pinned text first, then the middle of
    /// the results in progress, then the middle of the newest user message, then the text, thinking
    /// and arguments of the call in progress; each down to a floor, then without one. Where there
    /// are too many calls in progress for that, the oldest of them go with their results; and where
    /// there are too many pinned messages, the oldest of those.
    pub(super) fn shrink_protected(&mut self, budget: Tokens) -> Result<()> {
        let protected: Vec<usize> = (0..self.nodes.len())
            .filter(|&at| self.nodes[at].is_live() && self.is_protected(at))
            .collect();
        if self.tokens_at(&protected) <= budget {
            return Ok(());
        }
        self.thin_out_calls(&protected, budget)?;
        for (floor, rounds) in [(FAIR_FORM, ROUNDS), (SHORTEST_FORM, ROUNDS), (SHORTEST_FORM, 0)] {
            for part in [Part::Pinned, Part::Results, Part::Newest, Part::Call] {
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

    fn part_of(&self, at: usize) -> Part {
        let node = &self.nodes[at];
        if self.is_newest_user(at) {
            Part::Newest
        } else if !node.facts.results.is_empty() {
            Part::Results
        } else if !node.facts.calls.is_empty() {
            Part::Call
        } else {
            Part::Pinned
        }
    }

    /// Trims one part, and says whether all that is protected fits now. What one round leaves
    /// over, because some messages cannot become as short as the common cap, the next one takes
    /// from the others. Without rounds, every message gets its shortest form.
    fn shrink_part(
        &mut self,
        protected: &[usize],
        part: Part,
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

    /// Takes `over` tokens from messages by one common cap, so that the largest give most. Returns
    /// those that could become as short as that, and could become shorter.
    fn shrink_all(
        &mut self,
        members: &[usize],
        part: Part,
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
            let results = (node.facts.results.len() as u32).max(1);
            let least = Tokens(floor.0.saturating_mul(results));
            let cap = common.max(least);
            if node.tokens > cap {
                let form = shrink(&*node.message()?, cap, part, self.ledger.counter());
                if self.ledger.count(&form) < node.tokens {
                    self.set_form(at, form, &Why::finish(REASON));
                }
            }
            let tokens = self.nodes[at].tokens;
            if tokens > least && tokens <= cap {
                left.push(at);
            }
        }
        Ok(left)
    }

    /// Removes the oldest calls in progress and their results, where not even [`LEAST_RESULT`] of
    /// each result would fit beside the calls. The newest call always stays.
    fn thin_out_calls(&mut self, protected: &[usize], budget: Tokens) -> Result<()> {
        let mut calls: Vec<(CallId, Tokens)> = Vec::new();
        let mut forms: Vec<usize> = protected.to_vec();
        forms.retain(|&at| self.groups[self.nodes[at].group as usize].in_progress);
        for &at in &forms {
            if !self.nodes[at].facts.calls.is_empty() {
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

    /// The least a call can be trimmed to.
    fn least(&self, call: &ToolCall) -> Tokens {
        let call = ToolCall { arguments: RawJson::from_text("{}"), ..call.clone() };
        self.ledger.count(&Message::new(Role::Assistant, vec![Block::ToolCall(call)]))
    }

    fn remove_calls(&mut self, at: usize, removed: &HashSet<CallId>) -> Result<()> {
        let facts = &self.nodes[at].facts;
        if !facts.calls.iter().chain(&facts.results).any(|id| removed.contains(id)) {
            return Ok(());
        }
        let mut form = Message::clone(&*self.nodes[at].message()?);
        form.blocks.retain(|block| match block {
            Block::ToolCall(call) => !removed.contains(&call.id),
            Block::ToolResult(result) => !removed.contains(&result.call_id),
            _ => true,
        });
        if form.blocks.is_empty() {
            self.drop_node(at, &Why::finish(TOO_MANY));
        } else {
            self.set_form(at, form, &Why::finish(TOO_MANY));
        }
        Ok(())
    }

    /// The last resort, for thousands of pinned messages: the oldest go. Instructions go after
    /// anything else that is pinned, then the call in progress, and the newest user message last.
    fn shed(&mut self, protected: &[usize], budget: Tokens) {
        let rank = |view: &Self, at: usize| {
            let node = &view.nodes[at];
            let group = &view.groups[node.group as usize];
            match view.newest_user.as_ref() {
                Some(user) if user.group == node.group => 3,
                _ if group.in_progress => 2,
                _ => u8::from(node.facts.role == Role::System),
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
                total -= self.drop_group(group, &Why::finish(TOO_MANY)).get();
            }
        }
    }
}

/// The cap `c` for which the sum of `min(size, c)` is at most `target` and as large as can be.
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
    fn the_largest_give_most() {
        let sizes = [10, 1_000, 5_000].map(Tokens);
        assert_eq!(common_cap(&sizes, Tokens(2_010)), Tokens(1_000));
        assert_eq!(common_cap(&sizes, Tokens(1_010)), Tokens(500));
        assert_eq!(common_cap(&sizes, Tokens(9_000)), Tokens(u32::MAX));
    }
}
