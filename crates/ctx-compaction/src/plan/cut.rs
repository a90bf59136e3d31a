//! Decides where history is cut.

use ctx_core::Tokens;

use crate::chunk::boundaries;
use crate::{Config, History, PlanLimits};

use super::budget::RequestBudget;

/// The minimum size of a truncated tool result, in the check whether truncated results would fit.
const LEAST_RESULT: Tokens = Tokens(64);

/// The possible cuts of a history, and what each would keep.
pub(super) struct CutPoints {
    /// For each item, whether the history can be cut before it.
    can: Vec<bool>,
    /// Tokens from each item to the end; one element more than items.
    kept: Vec<Tokens>,
    /// The same with tool results truncated as far as is useful.
    least: Vec<Tokens>,
    /// Tokens of the items before each position that stay anyway.
    staying: Vec<Tokens>,
    budget: RequestBudget,
}

impl CutPoints {
    pub(super) fn of(history: &History, budget: &RequestBudget) -> Self {
        let items = &history.items;
        let groups: Vec<u32> = items.iter().map(|item| item.group).collect();
        let mut can = boundaries(items.len(), &groups);
        if let Some(first) = can.first_mut() {
            *first = false;
        }
        // A result without its call cannot begin a request if another choice exists.
        let begins: Vec<bool> =
            can.iter().zip(items).map(|(&can, item)| can && !item.is_results()).collect();
        let can = if begins.contains(&true) { begins } else { can };
        let mut kept = vec![Tokens::ZERO; items.len() + 1];
        let mut least = kept.clone();
        let mut staying = kept.clone();
        for (at, item) in items.iter().enumerate().rev() {
            kept[at] = kept[at + 1] + item.tokens;
            let shortest = if item.has_results { LEAST_RESULT } else { item.tokens };
            least[at] = least[at + 1] + item.tokens.min(shortest);
        }
        for (at, item) in items.iter().enumerate() {
            staying[at + 1] = staying[at] + if item.stays { item.tokens } else { Tokens::ZERO };
        }
        Self { can, kept, least, staying, budget: *budget }
    }

    /// Returns the tokens kept by a cut.
    pub(super) fn kept(&self, cut: usize) -> Tokens {
        self.kept[cut]
    }

    /// Returns the tokens that stay although they are before a cut.
    pub(super) fn staying(&self, cut: usize) -> Tokens {
        self.staying[cut]
    }

    /// Finds the cut, or the reason why there is none. With `demanded`, one is made even if all
    /// fits, or if it separates a user message from its answer against the configuration.
    pub(super) fn find(
        &self,
        history: &History,
        config: &Config,
        limits: PlanLimits,
        demanded: bool,
    ) -> Result<usize, String> {
        let len = history.items.len();
        match len {
            0 => return Err("there are no messages".to_owned()),
            1 => return Err("there is only one message".to_owned()),
            _ => {}
        }
        let mut from = self.wanted(history, config, limits);
        if from == 0 && self.fits(0) {
            if !demanded {
                let kept = self.kept(0);
                return Err(format!("all {len} messages ({kept} tokens) fit and are kept"));
            }
            from = self.half(history);
        }
        let whole = if config.split_turns { None } else { self.whole_turns(from, history) };
        if whole.is_none() && !config.split_turns && !demanded {
            return Err("every cut would separate a user message from its answer".to_owned());
        }
        let found = whole.or_else(|| self.within(from));
        found.ok_or_else(|| "all messages belong to one tool call and its results".to_owned())
    }

    /// Returns the cut that the configuration asks for; 0 if it keeps everything.
    fn wanted(&self, history: &History, config: &Config, limits: PlanLimits) -> usize {
        let items = &history.items;
        let newest = |count: u32| items.len().saturating_sub(count as usize);
        if limits.emergency {
            return newest(config.emergency.keep_messages);
        }
        if let Some(turns) = config.keep_recent_turns {
            let mut starts = (0..items.len()).rev().filter(|&at| items[at].is_user);
            return match turns.checked_sub(1) {
                Some(older) => starts.nth(older as usize).unwrap_or(0),
                None => items.len(),
            };
        }
        if let Some(count) = config.keep_recent_messages {
            return newest(count.count(history.ledger.window()));
        }
        let keep = history.ledger.keep_recent(Tokens(config.keep_recent_tokens));
        (0..items.len()).rev().find(|&at| self.kept(at) >= keep).unwrap_or(0)
    }

    /// Finds the cut if everything fits: about half is removed, at the beginning of a turn if one
    /// is near.
    fn half(&self, history: &History) -> usize {
        let [least, half, most] = [0.25, 0.5, 0.75].map(|share| self.kept(0).scale(share));
        let is_about = |at: &usize| (least..=most).contains(&self.kept(*at));
        let turns = (1..history.items.len()).filter(|&at| history.items[at].is_user);
        let turn = turns.filter(is_about).min_by_key(|&at| self.kept(at).0.abs_diff(half.0));
        let first = || (1..history.items.len()).find(|&at| self.kept(at) <= half);
        turn.or_else(first).unwrap_or(1)
    }

    /// Returns the first position from `from` on that keeps what fits, else the one that keeps
    /// least.
    fn within(&self, from: usize) -> Option<usize> {
        let all = || (0..self.can.len()).filter(|&at| self.can[at]);
        all().find(|&at| at >= from && self.fits(at)).or_else(|| all().next_back())
    }

    /// Like [`CutPoints::within`], but only before messages of the user, and falls back to earlier
    /// positions. One that keeps too much is accepted only if truncated tool results make it fit.
    fn whole_turns(&self, from: usize, history: &History) -> Option<usize> {
        let all = || (0..self.can.len()).filter(|&at| self.can[at] && history.items[at].is_user);
        all()
            .find(|&at| at >= from && self.fits(at))
            .or_else(|| all().rfind(|&at| at < from && self.fits(at)))
            .or_else(|| all().next_back().filter(|&at| self.within_budget(self.least[at], at)))
    }

    fn fits(&self, cut: usize) -> bool {
        self.within_budget(self.kept[cut], cut)
    }

    fn within_budget(&self, kept: Tokens, cut: usize) -> bool {
        kept <= self.budget.kept && kept + self.staying[cut] <= self.budget.messages
    }
}
