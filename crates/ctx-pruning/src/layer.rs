//! The pruning layer.

use ctx_core::{ContextView, Layer, Message, Prepared, Result, Tokens, ToolResult, TurnContext};

use crate::result::{cleared, is_surely_short, most_chars, soft_trimmed, tokens_of};
use crate::scope::{PrunableMessage, before_last_assistants, before_last_turns, prunable_messages};
use crate::tools::ToolFilter;
use crate::{Config, Mode};

/// In `turn-age`, clearing continues down to this share of `hardClearRatio`. Stopping right below
/// the ratio would clear one more result, and change the cached prefix, on every turn.
const TURN_AGE_LOW_WATER: f64 = 0.8;

const TRIMMED: &str = "stale tool result, both ends kept";
const CLEARED: &str = "stale tool result, cleared because the request exceeds hardClearRatio";
const CLEARED_ALONE: &str = "stale tool result, too large on its own";

/// Trims stale tool results.
///
/// # What
///
/// When results are stale (see [`Mode`]) and the request takes at least `softTrimRatio` of the
/// context window:
///
/// 1. a stale result that alone exceeds `hardClearRatio` of the window is cleared at once;
/// 2. other results longer than `softTrim.maxChars` are trimmed to both ends, and their images are
///    replaced by a notice;
/// 3. if the request still takes `hardClearRatio` of the window, and the stale results still have
///    `minPrunableToolChars` characters, they are cleared, oldest first, until it is below.
///
/// # Notes
///
/// Nothing is written to the transcript. The view keeps its edits: a trimmed result stays trimmed,
/// and a second run changes nothing.
///
/// *`cache-ttl` and busy sessions.* A session whose requests are less than the TTL apart is never
/// pruned: its cache is alive, and every change of the prefix would cost money. Users of OpenClaw
/// found that this makes their busiest sessions the most expensive (openclaw#58284).
///
/// *`turn-age` and the cache.* This mode ignores time and prunes in batches. A batch starts when a
/// result that trimming would change is `turns + batchTurns` turns old, and includes all results
/// that are `turns` turns old, so the prefix changes once in `batchTurns` turns. For the same
/// reason, clearing to reduce the total continues down to four fifths of `hardClearRatio`.
///
/// # Default
///
/// Off. See [`Config`].
///
/// # Example
///
/// ```
/// use ctx_pruning::{Config, Mode, Pruning};
///
/// let layer = Pruning::new(Config { mode: Mode::TurnAge, turns: 4, ..Config::default() })?;
/// assert_eq!(layer.config().turns, 4);
/// # Ok::<(), ctx_core::Error>(())
/// ```
///
/// The placeholder must not be empty, as providers reject empty blocks:
///
/// ```
/// use ctx_pruning::{Config, HardClear, Pruning};
///
/// let empty = HardClear { enabled: true, placeholder: String::new() };
/// assert!(Pruning::new(Config { hard_clear: empty, ..Config::default() }).is_err());
/// ```
#[derive(Clone, Debug)]
pub struct Pruning {
    config: Config,
    filter: ToolFilter,
}

impl Pruning {
    /// The layer's name.
    pub const ID: &'static str = "pruning";

    /// Creates a layer with the given settings.
    ///
    /// # Errors
    ///
    /// [`ctx_core::ErrorKind::Config`] for an invalid tool pattern, a ratio outside 0 to 1, a
    /// `softTrimRatio` above `hardClearRatio`, a TTL of more than a year, or an empty placeholder.
    pub fn new(config: Config) -> Result<Self> {
        config.check()?;
        Ok(Self { filter: ToolFilter::new(&config.tools)?, config })
    }

    /// Returns the settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the end of the stale messages, or `None` if no pruning is due.
    fn stale_before(&self, view: &ContextView, turn: &TurnContext) -> Option<usize> {
        if share_used(view) < self.config.soft_trim_ratio {
            return None;
        }
        let kept = || before_last_assistants(view, self.config.keep_last_assistants);
        match self.config.mode {
            Mode::Off => None,
            Mode::CacheTtl => {
                let ttl = self.config.ttl.duration().as_millis();
                let idle = turn.now.0.saturating_sub(turn.last_request?.0);
                let expired = u128::try_from(idle).is_ok_and(|idle| ttl > 0 && idle >= ttl);
                expired.then(kept)?
            }
            Mode::TurnAge => {
                before_last_turns(view, self.config.turns).and_then(|b| Some(b.min(kept()?)))
            }
        }
    }

    /// Trims stale results, and clears those that alone exceed the ratio.
    fn trim(&self, view: &mut ContextView, end: usize) -> Result<()> {
        let counter = *view.ledger().counter();
        let alone = self.alone(view);
        let stale = prunable_messages(view, end, &self.filter, |node| {
            self.may_clear_alone(node.tokens(), alone)
                || !is_surely_short(node.tokens(), &self.config.soft_trim, &counter)
        })?;
        let Config { mode, turns, batch_turns, .. } = self.config;
        // A change before this position is overdue and starts a batch.
        let overdue = match mode {
            Mode::TurnAge => {
                before_last_turns(view, turns.saturating_add(batch_turns)).unwrap_or(0)
            }
            Mode::Off | Mode::CacheTtl => view.len(),
        };
        let mut begun = false;
        for candidate in &stale {
            if candidate.at >= overdue && !begun {
                break;
            }
            begun |= self.trim_one(view, candidate)?;
        }
        Ok(())
    }

    /// Returns the size above which a single result is cleared at once.
    fn alone(&self, view: &ContextView) -> Tokens {
        view.ledger().window().scale(self.config.hard_clear_ratio)
    }

    fn may_clear_alone(&self, tokens: Tokens, alone: Tokens) -> bool {
        self.config.hard_clear.enabled && tokens > alone
    }

    fn trim_one(&self, view: &mut ContextView, candidate: &PrunableMessage) -> Result<bool> {
        let counter = *view.ledger().counter();
        let alone = self.alone(view);
        let node = view.node(candidate.at);
        let may_clear = self.may_clear_alone(node.tokens(), alone);
        let mut reason = TRIMMED;
        let change = |result: &ToolResult| {
            let clear = cleared(result, &self.config.hard_clear.placeholder)?;
            if may_clear && tokens_of(result, &counter) > alone {
                reason = CLEARED_ALONE;
                Some(clear)
            } else {
                soft_trimmed(result, &self.config.soft_trim)
            }
        };
        let form = candidate.rewritten(&*node.message()?, change);
        self.show(view, candidate.at, form, reason)
    }

    /// Clears the oldest results until the request is below the ratio.
    fn clear(&self, view: &mut ContextView, end: usize) -> Result<()> {
        let Config { hard_clear, hard_clear_ratio, mode, .. } = &self.config;
        if !hard_clear.enabled
            || share_used(view) < *hard_clear_ratio
            || self.is_surely_not_worth_clearing(view, end)
        {
            return Ok(());
        }
        let stale = prunable_messages(view, end, &self.filter, |_| true)?;
        if !self.is_worth_clearing(view, &stale)? {
            return Ok(());
        }
        let low_water = if *mode == Mode::TurnAge { TURN_AGE_LOW_WATER } else { 1.0 };
        for candidate in &stale {
            if share_used(view) < hard_clear_ratio * low_water {
                break;
            }
            let message = view.node(candidate.at).message()?;
            let form = candidate.rewritten(&message, |r| cleared(r, &hard_clear.placeholder));
            self.show(view, candidate.at, form, CLEARED)?;
        }
        Ok(())
    }

    /// Whether the token counts alone prove that the messages before `end` have too few characters.
    fn is_surely_not_worth_clearing(&self, view: &ContextView, end: usize) -> bool {
        let counter = view.ledger().counter();
        let live = view.nodes().iter().take(end).filter(|n| n.is_live() && !n.results().is_empty());
        let most: u64 = live.map(|n| most_chars(n.tokens(), counter)).sum();
        most < u64::from(self.config.min_prunable_tool_chars.0)
    }

    fn is_worth_clearing(&self, view: &ContextView, stale: &[PrunableMessage]) -> Result<bool> {
        let least = u64::from(self.config.min_prunable_tool_chars.0);
        let mut chars = 0u64;
        for candidate in stale {
            if chars >= least {
                break;
            }
            let message = view.node(candidate.at).message()?;
            chars += candidate.admitted(&message).map(ToolResult::chars).sum::<u64>();
        }
        Ok(chars >= least)
    }

    /// Applies a replacement if there is one and it is smaller. Returns whether it did so.
    fn show(
        &self,
        view: &mut ContextView,
        at: usize,
        form: Option<Message>,
        reason: &'static str,
    ) -> Result<bool> {
        let before = view.node(at).tokens();
        let Some(form) = form.filter(|form| view.ledger().count(form) < before) else {
            return Ok(false);
        };
        view.replace(at, form, Self::ID, reason)?;
        Ok(true)
    }
}

impl Layer for Pruning {
    fn id(&self) -> &'static str {
        Self::ID
    }

    fn apply(&self, view: &mut ContextView, _: Option<Prepared>, turn: &TurnContext) -> Result<()> {
        let Some(end) = self.stale_before(view, turn) else { return Ok(()) };
        self.trim(view, end)?;
        self.clear(view, end)
    }
}

/// Returns the share of the context window that the request takes.
fn share_used(view: &ContextView) -> f64 {
    f64::from(view.used().0) / f64::from(view.ledger().window().max(Tokens(1)).0)
}
