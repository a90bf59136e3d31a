//! Finds where the kept part of a history begins, by the rule of each preset.

use std::collections::HashMap;

use ctx_core::{ContextView, Role, Tokens};

use super::Keep;

/// Positions of a view at which it may be cut.
pub(super) struct CutPoints<'a> {
    view: &'a ContextView,
    /// Live messages without system messages and summaries, oldest first.
    live: Vec<usize>,
    /// For each of `live`: whether no earlier call has a result at or after it.
    clean: Vec<bool>,
}

impl<'a> CutPoints<'a> {
    pub(super) fn of(view: &'a ContextView) -> Self {
        let is_history = |role: &Role| !matches!(role, Role::System | Role::CompactionSummary);
        let nodes = view.nodes();
        let live: Vec<usize> = (0..nodes.len())
            .filter(|&at| nodes[at].is_live() && is_history(nodes[at].role()))
            .collect();
        let mut last: HashMap<u32, usize> = HashMap::new();
        for &at in &live {
            last.insert(nodes[at].group, at);
        }
        let mut open_until = None;
        let mut clean = Vec::with_capacity(live.len());
        for &at in &live {
            clean.push(open_until.is_none_or(|until| until < at));
            open_until = open_until.max(last.get(&nodes[at].group).copied());
        }
        Self { view, live, clean }
    }

    fn tokens(&self, nth: usize) -> Tokens {
        self.live.get(nth).map_or(Tokens::ZERO, |&at| self.view.node(at).tokens())
    }

    fn is_user(&self, nth: usize) -> bool {
        self.live.get(nth).is_some_and(|&at| self.view.node(at).is_user())
    }

    fn total(&self) -> Tokens {
        (0..self.live.len()).map(|nth| self.tokens(nth)).sum()
    }

    /// Returns the first position for a clean cut at or after the `nth` message of the history.
    fn clean_from(&self, nth: usize) -> Option<usize> {
        (nth..self.live.len()).find(|&nth| self.clean[nth]).map(|nth| self.live[nth])
    }

    /// Returns the last position for a clean cut, which keeps as little as possible.
    pub(super) fn newest(&self) -> Option<usize> {
        (0..self.live.len()).rfind(|&nth| self.clean[nth]).map(|nth| self.live[nth])
    }

    /// Returns the first of the newest messages that together have at most `most` tokens, or the
    /// number of messages if not even one fits.
    fn newest_within(&self, most: Tokens) -> usize {
        let mut sum = Tokens::ZERO;
        let mut first = self.live.len();
        for nth in (0..self.live.len()).rev() {
            sum += self.tokens(nth);
            if sum > most {
                break;
            }
            first = nth;
        }
        first
    }

    /// Returns where the kept part begins, by a preset's rule; `None` if it keeps everything.
    pub(super) fn first_kept(&self, keep: Keep, window: Tokens) -> Option<usize> {
        match keep {
            Keep::Newest | Keep::UserMessages(_) => self.newest(),
            Keep::Recent(tokens) => self.recent(Tokens(tokens)),
            Keep::Share(share) => self.split_at_user(self.total().scale(1.0 - share)),
            Keep::Turns { share, least, most, room } => {
                let room = room.of(window).scale(share);
                // opencode's tail: whole turns while they fit, then a part of the next turn.
                self.within(Tokens(room.0.clamp(least, most)))
            }
            Keep::UnderTrigger => None,
        }
    }

    /// Returns the start of the longest tail with a clean cut and at most `most` tokens. If there is
    /// none, returns the start of the shortest tail.
    pub(super) fn within(&self, most: Tokens) -> Option<usize> {
        self.clean_from(self.newest_within(most)).or_else(|| self.newest())
    }

    /// pi's walk: back to the message at which `keep` tokens are reached, then forward to the next
    /// one that is not a tool result. If there is none, everything is kept.
    fn recent(&self, keep: Tokens) -> Option<usize> {
        let mut sum = Tokens::ZERO;
        for nth in (0..self.live.len()).rev() {
            sum += self.tokens(nth);
            if sum >= keep {
                return self.clean_from(nth);
            }
        }
        None
    }

    /// Gemini's split: the first message of the user after `before` tokens, else the last one.
    fn split_at_user(&self, before: Tokens) -> Option<usize> {
        let mut sum = Tokens::ZERO;
        let mut last = None;
        for nth in 0..self.live.len() {
            if self.is_user(nth) && self.clean[nth] {
                last = Some(self.live[nth]);
                if sum >= before {
                    return last;
                }
            }
            sum += self.tokens(nth);
        }
        last
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ctx_core::{Block, Counter, Entry, Message, RawJson, TokenLedger, ToolCall};

    use super::super::Threshold;
    use super::*;

    fn call(id: &str) -> Message {
        let call = ToolCall::new(id, "read", RawJson::from_text("{}"));
        Message::new(Role::Assistant, vec![Block::ToolCall(call)])
    }

    /// user, (call, result of 1,000 tokens) three times, answer; all of it twice.
    fn view() -> ContextView {
        let ledger = TokenLedger::new(Counter::default(), Tokens(200_000), Tokens::ZERO);
        let mut view = ContextView::new(ledger);
        let mut n = 0;
        let mut say = |message: Message| {
            view.append(Arc::new(Entry::in_memory(format!("{n:08x}"), message))).unwrap();
            n += 1;
        };
        for turn in 0..2 {
            say(Message::text(Role::User, "word".repeat(100)));
            for step in 0..3 {
                let id = format!("c{turn}{step}");
                say(call(&id));
                say(Message::tool_result(id.as_str(), "word".repeat(1_000)));
            }
            say(Message::text(Role::Assistant, "word".repeat(10)));
        }
        view
    }

    #[test]
    fn each_rule_cuts_like_its_project() {
        let view = view();
        let cuts = CutPoints::of(&view);
        let window = Tokens(100_000);
        let at = |keep| cuts.first_kept(keep, window);
        // Only the answer is kept.
        assert_eq!(at(Keep::Newest), Some(15));
        // 1,500 tokens are reached within the second step; the kept part may begin with the third.
        assert_eq!(at(Keep::Recent(1_500)), Some(13));
        assert_eq!(at(Keep::Recent(1_000_000)), None);
        // The second question is before seven tenths of the history, and is the last one.
        assert_eq!(at(Keep::Share(0.3)), Some(8));
        assert_eq!(at(Keep::Share(0.6)), Some(8));
        let turns = |most| Keep::Turns { share: 1.0, least: 0, most, room: Threshold::Share(1.0) };
        // A whole turn, and the end of the one before it.
        assert_eq!(at(turns(4_000)), Some(7));
        assert_eq!(at(turns(1_100)), Some(13));
        assert_eq!(at(turns(5)), Some(15));
        assert_eq!(cuts.within(Tokens(2_000)), Some(13));
    }
}
