//! Keeping the newest history by a token quota (Pi engine, 13.5.8).

use ctx_core::{ContextView, Layer, Prepared, Result, Tokens, TurnContext};
use serde::{Deserialize, Serialize};

use crate::Config;

/// Estimates are taken this much larger, because counting by characters is off by about as much.
pub const SAFETY_MARGIN: f64 = 1.2;

const REASON: &str = "older than the share of the window that history may take";

/// What a hard prune keeps and leaves out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HardPrunePlan {
    /// The position of the first message kept; older ones go unless they are protected.
    pub first_kept: usize,
    /// Unbroken stretches of messages left out.
    pub dropped_chunks: u32,
    /// Messages left out.
    pub dropped_messages: u32,
    /// Their tokens.
    pub dropped_tokens: Tokens,
    /// Tokens of what stays.
    pub kept_tokens: Tokens,
    /// The quota: window times `maxHistoryShare`.
    pub budget_tokens: Tokens,
}

/// Plans a hard prune: from the newest message back, messages are kept while their tokens, times
/// [`SAFETY_MARGIN`], fit the quota and the ledger's budget. It stops at the first that does not
/// fit, so that what is kept is one unbroken stretch. Protected messages are kept wherever they
/// stand, and count.
#[must_use]
pub fn plan_hard_prune(view: &ContextView, max_history_share: f64) -> HardPrunePlan {
    let share = max_history_share.clamp(0.1, 0.9);
    let quota = view.ledger().window().scale(share);
    let budget = Tokens((f64::from(quota.0) / SAFETY_MARGIN) as u32).min(view.ledger().budget());
    let nodes = view.nodes();
    let mut kept: Tokens = (0..nodes.len())
        .filter(|&at| nodes[at].is_live() && view.is_protected(at))
        .map(|at| nodes[at].tokens())
        .sum();
    let mut first_kept = nodes.len();
    for at in (0..nodes.len()).rev() {
        if nodes[at].is_live() && !view.is_protected(at) {
            if kept + nodes[at].tokens() > budget {
                break;
            }
            kept += nodes[at].tokens();
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
    for (at, node) in nodes[..first_kept].iter().enumerate() {
        let dropped = node.is_live() && !view.is_protected(at);
        if dropped {
            plan.dropped_messages += 1;
            plan.dropped_tokens += node.tokens();
            plan.dropped_chunks += u32::from(!in_chunk);
        }
        in_chunk = dropped || (in_chunk && !node.is_live());
    }
    plan
}

/// Leaves out the oldest history when the request does not fit.
///
/// # Notes
///
/// It does nothing while the messages are inside the budget. Once they are not, it cuts down to
/// the share, so that the next requests can grow before the provider's cached prefix is broken
/// again. It needs no model; nothing is summarised.
///
/// # Default
///
/// On, with `maxHistoryShare` 0.8.
///
/// # Example
///
/// ```
/// use ctx_compaction::{Config, HardPrune};
/// let layer = HardPrune::new(&Config::default().with_max_history_share(0.5));
/// # let _: &dyn ctx_core::Layer = &layer;
/// ```
#[derive(Clone, Debug)]
pub struct HardPrune {
    max_history_share: f64,
}

impl HardPrune {
    /// The layer's name in manifests.
    pub const ID: &'static str = "hard-prune";

    /// A layer with the config's share.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        Self { max_history_share: config.max_history_share }
    }
}

impl Config {
    /// Sets the share of the window that history may take after a hard prune.
    #[must_use]
    pub fn with_max_history_share(mut self, share: f64) -> Self {
        self.max_history_share = share;
        self
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

    use ctx_core::{Counter, Entry, Message, Role, TokenLedger};

    use super::*;

    fn view(messages: usize, tokens_each: usize) -> ContextView {
        let ledger = TokenLedger::new(Counter::default(), Tokens(16_000), Tokens(4_000));
        let mut view = ContextView::new(ledger);
        for n in 0..messages {
            let role = if n % 2 == 0 { Role::User } else { Role::Assistant };
            let message = Message::text(role, "word".repeat(tokens_each));
            view.append(Arc::new(Entry::held(format!("{n:08x}"), message))).unwrap();
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

    #[test]
    fn a_view_that_fits_is_left_alone() {
        let mut view = view(11, 1_000);
        let layer = HardPrune::new(&Config::default());
        let turn = TurnContext {
            now: Default::default(),
            last_request: None,
            ids: Arc::new(ctx_core::SequentialIds::default()),
            profile: Default::default(),
        };
        layer.apply(&mut view, None, &turn).unwrap();
        assert!(view.edits().is_empty());
    }
}
