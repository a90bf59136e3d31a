//! Keeps the newest history within a token quota (Pi engine).

use std::collections::HashMap;

use ctx_core::{ContextView, Layer, Prepared, Result, TokenLedger, Tokens, TurnContext};
use serde::{Deserialize, Serialize};

use crate::Config;

/// The factor applied to estimates; counting by characters is off by about as much.
pub const SAFETY_MARGIN: f64 = 1.2;

const REASON: &str = "oldest history, dropped to fit maxHistoryShare";

/// What a hard prune keeps and drops.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HardPrunePlan {
    /// The position of the first kept message; older ones are dropped unless protected.
    pub first_kept: usize,
    /// The number of contiguous ranges dropped.
    pub dropped_chunks: u32,
    /// The number of messages dropped.
    pub dropped_messages: u32,
    /// The tokens dropped.
    pub dropped_tokens: Tokens,
    /// The tokens kept.
    pub kept_tokens: Tokens,
    /// The quota: window times `maxHistoryShare`.
    pub budget_tokens: Tokens,
}

/// The data of one message that a hard prune needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prunable {
    pub(crate) tokens: Tokens,
    pub(crate) group: u32,
    /// Whether it is kept at any position.
    pub(crate) protected: bool,
}

/// Plans a hard prune: from the newest message back, messages are kept while their tokens, times
/// [`SAFETY_MARGIN`], fit the quota and the ledger's budget. A tool call and its results are kept
/// or dropped together. It stops at the first that does not fit, so the kept messages are
/// contiguous. Protected messages are kept at any position, and count.
///
/// The kept range may begin inside a turn. If it could only begin with a user message, a long turn
/// of many calls would be dropped as a whole.
fn plan_hard_prune(view: &ContextView, max_history_share: f64) -> HardPrunePlan {
    let nodes = view.nodes().iter().enumerate();
    let messages: Vec<Option<Prunable>> = nodes
        .map(|(at, node)| {
            let (tokens, group) = (node.tokens(), node.group);
            node.is_live().then(|| Prunable { tokens, group, protected: view.is_protected(at) })
        })
        .collect();
    plan_prune(&messages, view.ledger(), max_history_share)
}

/// [`plan_hard_prune`] over plain values; `None` is a message that is already dropped.
pub(crate) fn plan_prune(
    messages: &[Option<Prunable>],
    ledger: &TokenLedger,
    max_history_share: f64,
) -> HardPrunePlan {
    let share = max_history_share.clamp(0.1, 0.9);
    let quota = ledger.window().scale(share);
    let budget = Tokens((f64::from(quota.0) / SAFETY_MARGIN) as u32).min(ledger.budget());
    let mut kept = Tokens::ZERO;
    let mut groups: HashMap<u32, Tokens> = HashMap::new();
    for message in messages.iter().flatten() {
        if message.protected {
            kept += message.tokens;
        } else {
            *groups.entry(message.group).or_default() += message.tokens;
        }
    }
    let mut first_kept = messages.len();
    for (at, message) in messages.iter().enumerate().rev() {
        // A message no longer in the map is protected, or belongs to a group already counted.
        if let Some(size) = message.as_ref().and_then(|message| groups.remove(&message.group)) {
            if kept + size > budget {
                break;
            }
            kept += size;
        }
        first_kept = at;
    }
    let mut plan = HardPrunePlan {
        first_kept,
        dropped_chunks: 0,
        dropped_messages: 0,
        dropped_tokens: Tokens::ZERO,
        kept_tokens: kept,
        budget_tokens: quota,
    };
    let mut in_chunk = false;
    for message in &messages[..first_kept] {
        let dropped = message.filter(|message| !message.protected);
        if let Some(message) = dropped {
            plan.dropped_messages += 1;
            plan.dropped_tokens += message.tokens;
            plan.dropped_chunks += u32::from(!in_chunk);
        }
        in_chunk = dropped.is_some() || (in_chunk && message.is_none());
    }
    plan
}

/// Drops the oldest history when the request does not fit.
///
/// # Notes
///
/// It does nothing while the messages are within the budget. Above it, it cuts down to the share,
/// so that the next requests can grow before the provider's cached prefix changes again. It needs
/// no model; nothing is summarised.
///
/// # Default
///
/// On, with `maxHistoryShare` 0.8.
///
/// # Example
///
/// ```
/// use ctx_compaction::{Config, HardPrune};
/// let layer = HardPrune::new(&Config { max_history_share: 0.5, ..Config::default() });
/// # let _: &dyn ctx_core::Layer = &layer;
/// ```
#[derive(Clone, Debug)]
pub struct HardPrune {
    max_history_share: f64,
}

impl HardPrune {
    /// The layer's name in manifests.
    pub(crate) const ID: &'static str = "hard-prune";

    /// Creates a layer with the config's share.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        Self { max_history_share: config.max_history_share }
    }
}

impl Layer for HardPrune {
    fn id(&self) -> &'static str {
        Self::ID
    }

    fn apply(&self, view: &mut ContextView, _: Option<Prepared>, _: &TurnContext) -> Result<()> {
        if view.overflow() == Tokens::ZERO {
            return Ok(());
        }
        let plan = plan_hard_prune(view, self.max_history_share);
        for at in 0..plan.first_kept {
            if view.node(at).is_live() {
                view.drop(at, Self::ID, REASON);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ctx_core::{Action, Block, Counter, Entry, Message, RawJson, Role, ToolCall, check_pairs};

    use super::*;

    fn view(messages: usize, tokens_each: usize) -> ContextView {
        let ledger = TokenLedger::new(Counter::default(), Tokens(16_000), Tokens(4_000));
        let mut view = ContextView::new(ledger);
        for n in 0..messages {
            let role = if n % 2 == 0 { Role::User } else { Role::Assistant };
            let message = Message::text(role, "word".repeat(tokens_each));
            view.append(Arc::new(Entry::in_memory(format!("{n:08x}"), message))).unwrap();
        }
        view
    }

    #[test]
    fn the_newest_stay_within_the_share() {
        let view = view(20, 1_000);
        let plan = plan_hard_prune(&view, 0.8);
        // 16,000 x 0.8 / 1.2 = 10,666: ten messages of 1,000.
        assert_eq!((plan.first_kept, plan.dropped_messages), (10, 10));
        assert_eq!(plan.kept_tokens, Tokens(10_000));
        assert_eq!(plan.budget_tokens, Tokens(12_800));
        assert_eq!(plan.dropped_chunks, 1);
    }

    fn prune(view: &mut ContextView) {
        let turn = TurnContext::at(ctx_core::Timestamp::default());
        HardPrune::new(&Config::default()).apply(view, None, &turn).unwrap();
    }

    #[test]
    fn a_view_that_fits_is_left_alone() {
        let mut view = view(11, 1_000);
        prune(&mut view);
        assert!(view.edits().is_empty());
    }

    /// Builds turns of a question, calls with `parallel` parallel results each, and an answer.
    fn working(turns: usize, parallel: usize, result_tokens: usize) -> ContextView {
        let ledger = TokenLedger::new(Counter::default(), Tokens(16_000), Tokens(4_000));
        let mut view = ContextView::new(ledger);
        let mut messages = Vec::new();
        for turn in 0..turns {
            messages.push(Message::text(Role::User, "go on"));
            for step in 0..4 {
                let id = |n: usize| format!("{turn}-{step}-{n}");
                let call = |n| {
                    Block::ToolCall(ToolCall::new(id(n).as_str(), "read", RawJson::from_text("{}")))
                };
                messages.push(Message::new(Role::Assistant, (0..parallel).map(call).collect()));
                let result = |n| Message::tool_result(id(n), "word".repeat(result_tokens + 7 * n));
                messages.extend((0..parallel).map(result));
            }
            messages.push(Message::text(Role::Assistant, "done"));
        }
        for (n, message) in messages.into_iter().enumerate() {
            view.append(Arc::new(Entry::in_memory(format!("{n:08x}"), message))).unwrap();
        }
        view
    }

    #[test]
    fn a_call_and_its_results_fit_together_or_not_at_all() {
        for (parallel, tokens) in [(1, 300), (2, 700), (3, 333), (5, 1_000), (9, 450), (40, 90)] {
            let mut view = working(12, parallel, tokens);
            let plan = plan_hard_prune(&view, 0.8);
            let first = view.node(plan.first_kept);
            assert!(first.results().is_empty(), "{parallel} results of {tokens}");
            assert!(plan.kept_tokens <= Tokens(10_666));

            prune(&mut view);
            let dropped = view.edits().iter().filter(|e| e.action == Action::Drop);
            let dropped: Vec<Tokens> = dropped.map(|e| e.before).collect();
            assert_eq!(dropped.len(), plan.dropped_messages as usize);
            assert_eq!(dropped.into_iter().sum::<Tokens>(), plan.dropped_tokens);
            assert_eq!(view.total(), plan.kept_tokens);
            let sent = view.messages().unwrap();
            assert!(check_pairs(sent.iter().map(|m| &**m)).is_ok());
        }
    }

    #[test]
    fn a_long_turn_keeps_its_newest_steps() {
        let mut view = working(1, 5, 1_000);
        prune(&mut view);
        assert_eq!(view.node(0).role(), &Role::User);
        assert!(view.node(0).is_live() && !view.node(1).is_live());
        let kept = view.nodes().iter().filter(|n| n.is_live() && !n.results().is_empty());
        assert_eq!(kept.count(), 10);
    }
}
