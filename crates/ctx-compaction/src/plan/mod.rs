//! Plans what is summarised, what is kept, and the budgets of both.

mod budget;
mod cut;
mod truncate;

use std::sync::Arc;

use ctx_core::{Message, Result, TokenLedger, Tokens};

use crate::{Config, History};

use budget::RequestBudget;
use cut::CutPoints;

/// The minimum saving of a compaction.
const LEAST_GAIN: Tokens = Tokens(64);

/// The minimum budget for a useful summary.
const SHORTEST_SUMMARY: Tokens = Tokens(16);

/// The minimum share of the message budget that must be used before messages are compacted.
const LEAST_SHARE_BEFORE: f64 = 0.25;

/// The share of the threshold, without the fixed parts, that a compaction may leave.
const TARGET_SHARE_OF_THRESHOLD: f64 = 0.6;

/// The caller's limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanLimits {
    /// The maximum size of the whole request afterwards.
    pub token_budget: Option<Tokens>,
    /// Compact even if all of the history fits.
    pub force: bool,
    /// Cut to the emergency target.
    pub emergency: bool,
}

/// A message that is kept in truncated form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TruncatedMessage {
    /// The index of the item.
    pub at: usize,
    /// The message with the middle of its texts replaced by a notice.
    pub form: Arc<Message>,
}

/// Which part of a history is summarised, and the size limits afterwards.
///
/// The next request will hold the fixed parts, the summary, `items[cut..]`, and those of
/// `items[..cut]` that [stay](crate::HistoryItem::stays). With a summary of `summary_budget` it measures
/// at most `target` and [`TokenLedger::limit`], if the parts that cannot be truncated fit at all.
#[derive(Clone, Debug, PartialEq)]
pub struct CompactionPlan {
    /// `items[..cut]` are summarised, `items[cut..]` are kept. Never 0, never the number of items.
    pub cut: usize,
    /// The start of a split turn, before the cut: `items[turn_start..cut]` is its prefix.
    pub turn_start: Option<usize>,
    /// Whether the cut is inside a turn. As in pi, a command of the user begins a turn, and a cut
    /// right before such a command counts as a split although its prefix is empty.
    pub split_turn: bool,
    /// The maximum size of the whole request afterwards, fixed parts included, corrected.
    pub target: Tokens,
    /// Tokens of `items[..cut]`.
    pub covered_tokens: Tokens,
    /// Tokens of the items in `items[..cut]` that stay anyway, as sent.
    pub staying_tokens: Tokens,
    /// Tokens of `items[cut..]`, as sent.
    pub kept_tokens: Tokens,
    /// The maximum size of the stored summary, in tokens of the ledger's counter, uncorrected.
    pub summary_budget: Tokens,
    /// Messages that are kept in truncated form, in order.
    pub shortened: Vec<TruncatedMessage>,
}

impl CompactionPlan {
    /// Returns the plan of a summary of all messages but the newest; `None` without another one.
    pub(crate) fn whole(history: &History) -> Option<Self> {
        let (kept, covered) = history.items.split_last()?;
        (!covered.is_empty()).then(|| Self {
            cut: covered.len(),
            turn_start: None,
            split_turn: false,
            target: history.ledger.limit(),
            covered_tokens: covered.iter().map(|item| item.tokens).sum(),
            staying_tokens: Tokens::ZERO,
            kept_tokens: kept.tokens,
            summary_budget: history.ledger.limit(),
            shortened: Vec::new(),
        })
    }
}

/// The result of planning.
#[derive(Clone, Debug, PartialEq)]
pub enum PlanOutcome {
    /// Compact according to this plan.
    Compact(CompactionPlan),
    /// Do nothing, for this reason.
    Nothing(String),
}

impl Config {
    /// Returns the size of the whole request at which history is compacted: `triggerRatio` of the
    /// window if set, else window minus reserve; never more than the latter. With a large system
    /// prompt, messages may use a quarter of the remaining budget before they are compacted,
    /// whatever the ratio; otherwise every request would compact them again.
    pub fn threshold(&self, ledger: &TokenLedger) -> Tokens {
        let Some(ratio) = self.trigger_ratio else { return ledger.limit() };
        let fixed = ledger.corrected(ledger.fixed());
        let least = fixed + (ledger.limit() - fixed).scale(LEAST_SHARE_BEFORE);
        ledger.window().scale(ratio).max(least).min(ledger.limit())
    }

    /// Returns the maximum size of a request after a compaction at the threshold: well below it, so
    /// that the next requests can grow before the provider's cached prefix changes again.
    pub(crate) fn target_after_threshold(&self, ledger: &TokenLedger) -> Tokens {
        let fixed = ledger.corrected(ledger.fixed());
        fixed + (self.threshold(ledger) - fixed).scale(TARGET_SHARE_OF_THRESHOLD)
    }
}

/// Plans a compaction. The caller decides whether one is due: see [`Config::threshold`].
///
/// The cut starts at the configured position and moves towards the newest message until it is
/// between groups and the kept messages fit: at most
/// [`KEEP_RECENT_MAX_SHARE`](ctx_core::KEEP_RECENT_MAX_SHARE) of the budget, with a fair share left
/// to the summary. The newest message or group is always kept. If it is too large on its own, its
/// tool results are truncated, and then its other texts too.
///
/// # Errors
///
/// As [`TokenLedger::check`]: fixed parts that leave no budget for messages.
///
/// # Example
///
/// ```
/// use std::sync::Arc;
/// use ctx_compaction::{Config, History, PlanLimits, PlanOutcome, plan};
/// use ctx_core::{ContextView, Counter, Entry, Message, Role, TokenLedger, Tokens};
///
/// let ledger = TokenLedger::new(Counter::default(), Tokens(16_000), Tokens(4_000));
/// let mut view = ContextView::new(ledger);
/// for n in 0..40 {
///     let role = if n % 2 == 0 { Role::User } else { Role::Assistant };
///     view.append(Arc::new(Entry::in_memory(format!("{n:08x}"), Message::text(role, "word".repeat(400)))))?;
/// }
/// let history = History::of(&view)?;
/// let PlanOutcome::Compact(plan) = plan(&history, &Config::default(), PlanLimits::default())? else {
///     unreachable!("16,000 tokens do not fit");
/// };
/// // 40 % of the budget of 12,000.
/// assert_eq!(plan.kept_tokens, Tokens(4_800));
/// assert_eq!(plan.cut, 28);
/// # Ok::<(), ctx_core::Error>(())
/// ```
pub fn plan(history: &History, config: &Config, limits: PlanLimits) -> Result<PlanOutcome> {
    history.ledger.check()?;
    let budget = RequestBudget::of(history, config, limits);
    let cuts = CutPoints::of(history, &budget);
    let over = history.used() > history.ledger.limit();
    let found = match cuts.find(history, config, limits, limits.force || limits.emergency || over) {
        Ok(cut) => cut,
        Err(reason) => return Ok(PlanOutcome::Nothing(reason)),
    };
    let (kept, staying) = (cuts.kept(found), cuts.staying(found));
    let fit = truncate::fit(history, found, &budget);
    let saved = (kept + staying) - (fit.kept + fit.staying);
    let covered: Tokens = history.items[..found].iter().map(|item| item.tokens).sum();
    let gone = (covered - staying) + saved;
    let previous = history.previous.as_ref().map_or(Tokens::ZERO, |previous| previous.tokens);
    if gone + if over { previous } else { Tokens::ZERO } < LEAST_GAIN {
        return Ok(PlanOutcome::Nothing(format!(
            "only {gone} tokens could be summarised: a summary would not be shorter"
        )));
    }
    let summary_budget = budget.summary(fit.kept + fit.staying, gone + previous);
    if summary_budget < SHORTEST_SUMMARY {
        return Ok(PlanOutcome::Nothing(format!(
            "messages that must be kept ({} tokens) leave no budget for a summary",
            fit.kept + fit.staying
        )));
    }
    let (turn_start, split_turn) = turn(history, found);
    Ok(PlanOutcome::Compact(CompactionPlan {
        cut: found,
        turn_start,
        split_turn,
        target: budget.target(&history.ledger, fit.kept + fit.staying + summary_budget),
        covered_tokens: covered,
        staying_tokens: fit.staying,
        kept_tokens: fit.kept,
        summary_budget,
        shortened: fit.shortened,
    }))
}

/// Returns the start of the split turn, if it has a prefix, and whether the cut splits a turn.
fn turn(history: &History, cut: usize) -> (Option<usize>, bool) {
    if history.items[cut].is_user {
        return (None, false);
    }
    let start = (0..=cut).rev().find(|&at| history.items[at].begins_turn());
    (start.filter(|&at| at < cut), start.is_some())
}
