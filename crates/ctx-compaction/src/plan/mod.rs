//! What is summarised, what stays, and how much room there is for either.

mod cut;
mod room;
mod shorten;

use std::sync::Arc;

use ctx_core::{Message, Result, TokenLedger, Tokens};

use crate::{Config, History};

use cut::Cuts;
use room::RequestRoom;

/// What a compaction must save, or a summary is not worth it.
const LEAST_GAIN: Tokens = Tokens(64);

/// A summary that may measure less says nothing.
const SHORTEST_SUMMARY: Tokens = Tokens(16);

/// The share of the room for messages that is used before they are compacted, at least.
const LEAST_SHARE_BEFORE: f64 = 0.25;

/// The share of the threshold, beside the fixed parts, that a compaction may leave.
const TARGET_SHARE_OF_THRESHOLD: f64 = 0.6;

/// What the caller asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// What the whole request may measure afterwards.
    pub token_budget: Option<Tokens>,
    /// Compact also where all of the history could stay.
    pub force: bool,
    /// Cut to the emergency target.
    pub emergency: bool,
}

/// A message that stays in a shorter form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortened {
    /// Which item.
    pub at: usize,
    /// Its form: the middle of its texts is gone, and a notice stands there.
    pub form: Arc<Message>,
}

/// Which part of a history is summarised, and how large everything may be afterwards.
///
/// The request will hold the fixed parts, the summary, `items[cut..]`, and of `items[..cut]` those
/// that [stay](crate::Item::stays). With a summary of `summary_budget` it measures at most `target`
/// and at most [`TokenLedger::limit`], as long as what cannot be shortened any more fits at all.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// `items[..cut]` are summarised, `items[cut..]` stay. Never 0 and never the number of items.
    pub cut: usize,
    /// A split turn begins at this item, before the cut: `items[turn_start..cut]` is its prefix.
    pub turn_start: Option<usize>,
    /// Whether the cut is inside a turn. As in pi, a command of the user begins a turn, and one
    /// that is cut right before such a command counts as split although its prefix is empty.
    pub split_turn: bool,
    /// What the whole request may measure afterwards, fixed parts included, corrected.
    pub target: Tokens,
    /// Tokens of `items[..cut]`.
    pub covered_tokens: Tokens,
    /// Tokens of those of `items[..cut]` that stay all the same, as they go out.
    pub staying_tokens: Tokens,
    /// Tokens of `items[cut..]`, as they go out.
    pub kept_tokens: Tokens,
    /// The most the stored summary may measure, in tokens of the ledger's counter, uncorrected.
    pub summary_budget: Tokens,
    /// Messages that stay in a shorter form, in order.
    pub shortened: Vec<Shortened>,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Planned {
    /// This.
    Compact(Plan),
    /// Nothing, for this reason.
    Nothing(String),
}

impl Config {
    /// From which size of the whole request on history is compacted: `triggerRatio` of the window
    /// where it is set, else window minus reserve; never more than the latter. Beside a large system
    /// prompt messages have a quarter of what it leaves before they are compacted, whatever the
    /// ratio, or every request would compact them again.
    #[must_use]
    pub fn threshold(&self, ledger: &TokenLedger) -> Tokens {
        let Some(ratio) = self.trigger_ratio else { return ledger.limit() };
        let fixed = ledger.corrected(ledger.fixed());
        let least = fixed + (ledger.limit() - fixed).scale(LEAST_SHARE_BEFORE);
        ledger.window().scale(ratio).max(least).min(ledger.limit())
    }

    /// What a request may measure after a compaction at the threshold: well below it, so that the
    /// next ones can grow before the provider's cached prefix is broken again.
    #[must_use]
    pub(crate) fn target_after_threshold(&self, ledger: &TokenLedger) -> Tokens {
        let fixed = ledger.corrected(ledger.fixed());
        fixed + (self.threshold(ledger) - fixed).scale(TARGET_SHARE_OF_THRESHOLD)
    }
}

/// Plans a compaction. Whether it is time for one is for the caller to say: see
/// [`Config::threshold`].
///
/// The cut lies where the policy of the configuration puts it, moved towards the newest message
/// until it is between groups and what is kept fits: at most
/// [`KEEP_RECENT_MAX_SHARE`](ctx_core::KEEP_RECENT_MAX_SHARE) of the budget, and with a fair share
/// left to the summary. The newest message or group always stays. Where it is too large by itself,
/// its tool results are shortened, and if that is not enough, its other texts too.
///
/// # Errors
///
/// As [`TokenLedger::check`]: fixed parts that leave no room for messages.
///
/// # Example
///
/// ```
/// use std::sync::Arc;
/// use ctx_compaction::{Config, History, Limits, Planned, plan};
/// use ctx_core::{ContextView, Counter, Entry, Message, Role, TokenLedger, Tokens};
///
/// let ledger = TokenLedger::new(Counter::default(), Tokens(16_000), Tokens(4_000));
/// let mut view = ContextView::new(ledger);
/// for n in 0..40 {
///     let role = if n % 2 == 0 { Role::User } else { Role::Assistant };
///     view.append(Arc::new(Entry::held(format!("{n:08x}"), Message::text(role, "word".repeat(400)))))?;
/// }
/// let history = History::of(&view)?;
/// let Planned::Compact(plan) = plan(&history, &Config::default(), Limits::default())? else {
///     unreachable!("16,000 tokens do not fit");
/// };
/// // 40 % of the 12,000 that messages may measure.
/// assert_eq!(plan.kept_tokens, Tokens(4_800));
/// assert_eq!(plan.cut, 28);
/// # Ok::<(), ctx_core::Error>(())
/// ```
pub fn plan(history: &History, config: &Config, limits: Limits) -> Result<Planned> {
    history.ledger.check()?;
    let room = RequestRoom::of(history, config, limits);
    let cuts = Cuts::of(history, &room);
    let over = history.used() > history.ledger.limit();
    let found = match cuts.find(history, config, limits, limits.force || limits.emergency || over) {
        Ok(cut) => cut,
        Err(reason) => return Ok(Planned::Nothing(reason)),
    };
    let (kept, staying) = (cuts.kept(found), cuts.staying(found));
    let fit = shorten::fit(history, found, &room);
    let saved = (kept + staying) - (fit.kept + fit.staying);
    let covered: Tokens = history.items[..found].iter().map(|item| item.tokens).sum();
    let gone = (covered - staying) + saved;
    let previous = history.previous.as_ref().map_or(Tokens::ZERO, |previous| previous.tokens);
    if gone + if over { previous } else { Tokens::ZERO } < LEAST_GAIN {
        return Ok(Planned::Nothing(format!(
            "only {gone} tokens could be summarised: a summary would not be shorter"
        )));
    }
    let summary_budget = room.summary(fit.kept + fit.staying, gone + previous);
    if summary_budget < SHORTEST_SUMMARY {
        return Ok(Planned::Nothing(format!(
            "messages that must stay ({} tokens) leave no room for a summary",
            fit.kept + fit.staying
        )));
    }
    let (turn_start, split_turn) = turn(history, found);
    Ok(Planned::Compact(Plan {
        cut: found,
        turn_start,
        split_turn,
        target: room.target(&history.ledger, fit.kept + fit.staying + summary_budget),
        covered_tokens: covered,
        staying_tokens: fit.staying,
        kept_tokens: fit.kept,
        summary_budget,
        shortened: fit.shortened,
    }))
}

/// Where the turn begins that the cut splits, if it has a prefix, and whether the cut splits one.
fn turn(history: &History, cut: usize) -> (Option<usize>, bool) {
    if history.items[cut].is_user {
        return (None, false);
    }
    let start = (0..=cut).rev().find(|&at| history.items[at].begins_turn());
    (start.filter(|&at| at < cut), start.is_some())
}
