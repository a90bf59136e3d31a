//! The token budgets after a compaction.

use ctx_core::{KEEP_RECENT_MAX_SHARE, MIN_MESSAGE_TOKENS, TokenLedger, Tokens};

use crate::{Config, History, PlanLimits};

/// The maximum summary as a share of the reserve (pi).
const SUMMARY_SHARE_OF_RESERVE: f64 = 0.8;

/// The share of the budget reserved for the summary, however much is kept.
const SUMMARY_SHARE_OF_ROOM: f64 = 1.0 / 3.0;

/// The maximum summary as a share of what it replaces, so that something is gained.
const SUMMARY_SHARE_OF_SOURCE: f64 = 0.75;

/// The summary may take this share of the window however small the reserve is: a profile with a
/// small reserve does not need a shorter summary.
const SUMMARY_SHARE_OF_WINDOW: f64 = 0.08;

/// A target that leaves less than this share of the budget to messages and summary is raised.
const LEAST_ROOM_SHARE: f64 = 0.1;

/// The limits for messages and summary of the next request, in counted (uncorrected) tokens.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestBudget {
    /// Fixed parts, system messages, and messages that layers inserted.
    other: Tokens,
    /// Target for messages and summary together.
    all: Tokens,
    /// Hard limit for messages and summary together.
    most: Tokens,
    /// Limit for the summary.
    summary: Tokens,
    /// Budget reserved for the summary, whatever is kept.
    share: Tokens,
    /// Limit for the messages from the cut on.
    pub(super) kept: Tokens,
    /// Limit for all messages that stay, so that the summary has its share.
    pub(super) messages: Tokens,
    /// The requested target.
    wanted: Option<Tokens>,
}

impl RequestBudget {
    pub(super) fn of(history: &History, config: &Config, limits: PlanLimits) -> Self {
        let ledger = &history.ledger;
        let wanted = wanted(ledger, config, limits);
        let others = others(history);
        let most = ledger.budget() - others;
        // An explicitly requested budget is not raised.
        let share = if limits.token_budget.is_some() { 0.0 } else { LEAST_ROOM_SHARE };
        let least = most.scale(share).max(MIN_MESSAGE_TOKENS);
        let asked = wanted.map(|target| counted(ledger, target) - ledger.fixed() - others);
        let all = asked.unwrap_or(most).max(least).min(most);
        let of_reserve = counted(ledger, ledger.reserve()).scale(SUMMARY_SHARE_OF_RESERVE);
        let of_window = counted(ledger, ledger.window()).scale(SUMMARY_SHARE_OF_WINDOW);
        let summary = of_reserve.max(of_window);
        let share = summary.min(all.scale(SUMMARY_SHARE_OF_ROOM));
        Self {
            other: ledger.fixed() + others,
            all,
            most,
            summary,
            share,
            // What the summary may not use goes to the kept messages.
            kept: all
                .scale(KEEP_RECENT_MAX_SHARE)
                .max(all - summary)
                .min(most.scale(KEEP_RECENT_MAX_SHARE)),
            messages: all - share,
            wanted,
        }
    }

    /// Returns the summary's budget beside messages of `stay` tokens, when it replaces `source`
    /// tokens. If they leave less than its share of the target, it gets that share up to the limit.
    pub(super) fn summary(&self, stay: Tokens, source: Tokens) -> Tokens {
        let left = (self.all - stay).max(self.share.min(self.most - stay));
        self.summary.min(left).min(source.scale(SUMMARY_SHARE_OF_SOURCE))
    }

    /// Returns the effective target, when messages and summary measure at most `stay`.
    pub(super) fn target(&self, ledger: &TokenLedger, stay: Tokens) -> Tokens {
        let needed = ledger.corrected(self.other + stay);
        self.wanted.map_or(needed, |wanted| wanted.max(needed)).min(ledger.limit())
    }
}

/// Returns the requested target, the smallest of several.
fn wanted(ledger: &TokenLedger, config: &Config, limits: PlanLimits) -> Option<Tokens> {
    let ratio = match limits.emergency {
        true => Some(config.emergency.target_ratio),
        false => config.target_ratio,
    };
    let of_window = ratio.map(|ratio| ledger.window().scale(ratio));
    let asked = of_window.into_iter().chain(limits.token_budget).min();
    asked.map(|target| target.min(ledger.limit()))
}

/// Converts a corrected size to counted tokens, rounded down.
fn counted(ledger: &TokenLedger, corrected: Tokens) -> Tokens {
    Tokens((f64::from(corrected.0) / ledger.calibration.factor()) as u32)
}

/// System messages and inserted messages are in no item: they are the rest of the request.
fn others(history: &History) -> Tokens {
    let items: Tokens = history.items.iter().map(|item| item.tokens).sum();
    let previous = history.previous.as_ref().map_or(Tokens::ZERO, |previous| previous.tokens);
    history.counted - history.ledger.fixed() - items - previous
}
