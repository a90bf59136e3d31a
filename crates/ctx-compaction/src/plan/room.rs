//! How much room there is after a compaction.

use ctx_core::{KEEP_RECENT_MAX_SHARE, MIN_MESSAGE_TOKENS, TokenLedger, Tokens};

use crate::{Config, History, Limits};

/// The share of the reserve that a summary may measure (pi).
const SUMMARY_SHARE_OF_RESERVE: f64 = 0.8;

/// The share of the room that is left to the summary, however much is to be kept.
const SUMMARY_SHARE_OF_ROOM: f64 = 1.0 / 3.0;

/// The share of what a summary replaces that it may measure, so that something is gained.
const SUMMARY_SHARE_OF_SOURCE: f64 = 0.75;

/// A summary may measure this share of the window however small the reserve is: a profile that keeps
/// little free for the answer has no less to remember.
const SUMMARY_SHARE_OF_WINDOW: f64 = 0.08;

/// A target that leaves less than this share of the budget to messages and summary is raised.
const LEAST_ROOM_SHARE: f64 = 0.1;

/// What messages and summary of the request to come may measure, in counted (uncorrected) tokens.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestRoom {
    /// Fixed parts, system messages, and what layers added.
    other: Tokens,
    /// Messages and summary together.
    all: Tokens,
    /// What messages and summary may measure before the request is too long.
    most: Tokens,
    /// The most a summary may measure.
    summary: Tokens,
    /// What is left to the summary, whatever is kept.
    share: Tokens,
    /// Messages from the cut on.
    pub(super) kept: Tokens,
    /// All messages that stay, so that the summary has its share.
    pub(super) messages: Tokens,
    /// What was asked for.
    wanted: Option<Tokens>,
}

impl RequestRoom {
    pub(super) fn of(history: &History, config: &Config, limits: Limits) -> Self {
        let ledger = &history.ledger;
        let wanted = wanted(ledger, config, limits);
        let others = others(history);
        let most = ledger.budget() - others;
        // What somebody asked for by number is meant.
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
            kept: most.scale(KEEP_RECENT_MAX_SHARE),
            messages: all - share,
            wanted,
        }
    }

    /// What the summary may measure beside messages of `stay` tokens, when it stands for `source`
    /// tokens. Where they leave it less than its share of the target, what the limit leaves.
    pub(super) fn summary(&self, stay: Tokens, source: Tokens) -> Tokens {
        let left = (self.all - stay).max(self.share.min(self.most - stay));
        self.summary.min(left).min(source.scale(SUMMARY_SHARE_OF_SOURCE))
    }

    /// The target in force, when messages and summary measure at most `stay`.
    pub(super) fn target(&self, ledger: &TokenLedger, stay: Tokens) -> Tokens {
        let needed = ledger.corrected(self.other + stay);
        self.wanted.map_or(needed, |wanted| wanted.max(needed)).min(ledger.limit())
    }
}

/// The target that was asked for, the least of several.
fn wanted(ledger: &TokenLedger, config: &Config, limits: Limits) -> Option<Tokens> {
    let ratio = match limits.emergency {
        true => Some(config.emergency.target_ratio),
        false => config.target_ratio,
    };
    let of_window = ratio.map(|ratio| ledger.window().scale(ratio));
    let asked = of_window.into_iter().chain(limits.token_budget).min();
    asked.map(|target| target.min(ledger.limit()))
}

/// What a corrected size is in counted tokens, rounded down.
fn counted(ledger: &TokenLedger, corrected: Tokens) -> Tokens {
    Tokens((f64::from(corrected.0) / ledger.calibration().factor()) as u32)
}

/// System messages and what layers added are in no item: they are what is left of the request.
fn others(history: &History) -> Tokens {
    let items: Tokens = history.items.iter().map(|item| item.tokens).sum();
    let previous = history.previous.as_ref().map_or(Tokens::ZERO, |previous| previous.tokens);
    history.counted - history.ledger.fixed() - items - previous
}
