//! Where history is cut.

use ctx_core::Tokens;

use crate::chunk::boundaries;
use crate::{Config, History, Limits};

use super::room::RequestRoom;

/// A tool result counts as at least this much when it is asked whether shortened results would fit.
const LEAST_RESULT: Tokens = Tokens(64);

/// The places where a history can be cut, and what would stay.
pub(super) struct Cuts {
    /// For each item whether the history can be cut before it.
    can: Vec<bool>,
    /// Tokens from each item to the end; one more than there are items.
    kept: Vec<Tokens>,
    /// The same with tool results shortened as far as makes sense.
    least: Vec<Tokens>,
    /// Tokens of the items before each that stay all the same.
    staying: Vec<Tokens>,
    room: RequestRoom,
}

impl Cuts {
    pub(super) fn of(history: &History, room: &RequestRoom) -> Self {
        let items = &history.items;
        let groups: Vec<u32> = items.iter().map(|item| item.group).collect();
        let mut can = boundaries(items.len(), &groups);
        if let Some(first) = can.first_mut() {
            *first = false;
        }
        // A result without its call can't begin a request, as long as there is another choice.
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
        Self { can, kept, least, staying, room: *room }
    }

    /// Tokens of what is kept by a cut.
    pub(super) fn kept(&self, cut: usize) -> Tokens {
        self.kept[cut]
    }

    /// Tokens of what stays although it is before a cut.
    pub(super) fn staying(&self, cut: usize) -> Tokens {
        self.staying[cut]
    }

    /// The cut, or why there is none. `demanded`: one is made even where all could stay, or where
    /// it parts a user message from its answer against the configuration.
    pub(super) fn find(
        &self,
        history: &History,
        config: &Config,
        limits: Limits,
        demanded: bool,
    ) -> Result<usize, String> {
        let len = history.items.len();
        if len < 2 {
            return Err(match len {
                0 => "there are no messages".to_owned(),
                _ => "there is only one message".to_owned(),
            });
        }
        let mut from = self.wanted(history, config, limits);
        if from == 0 && self.fits(0) {
            if !demanded {
                return Err(format!(
                    "all {len} messages ({} tokens) are among those that stay",
                    self.kept(0)
                ));
            }
            from = self.half(history);
        }
        let found = if config.split_turns {
            self.within(from, &self.can)
        } else {
            let before_user: Vec<bool> = self
                .can
                .iter()
                .zip(&history.items)
                .map(|(&can, item)| can && item.is_user)
                .collect();
            let whole = self.whole_turns(from, &before_user);
            match whole {
                None if !demanded => {
                    return Err("no cut leaves each message of the user with its answer".to_owned());
                }
                None => self.within(from, &self.can),
                found => found,
            }
        };
        found.ok_or_else(|| "all messages belong to one tool call and its results".to_owned())
    }

    /// Where the policy would cut; 0 if it keeps everything.
    fn wanted(&self, history: &History, config: &Config, limits: Limits) -> usize {
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

    /// Where to cut when all could stay: so that about half goes, at the beginning of a turn if one
    /// begins there about.
    fn half(&self, history: &History) -> usize {
        let [least, half, most] = [0.25, 0.5, 0.75].map(|share| self.kept(0).scale(share));
        let is_about = |at: &usize| (least..=most).contains(&self.kept(*at));
        let turns = (1..history.items.len()).filter(|&at| history.items[at].is_user);
        let turn = turns.filter(is_about).min_by_key(|&at| self.kept(at).0.abs_diff(half.0));
        let first = || (1..history.items.len()).find(|&at| self.kept(at) <= half);
        turn.or_else(first).unwrap_or(1)
    }

    /// The first place from `from` on that keeps what fits, else the one that keeps least.
    fn within(&self, from: usize, places: &[bool]) -> Option<usize> {
        let all = || (0..places.len()).filter(|&at| places[at]);
        all().find(|&at| at >= from && self.fits(at)).or_else(|| all().next_back())
    }

    /// As [`Cuts::within`], but earlier places are better than none; and one that keeps too much
    /// is only good enough if shortened tool results make it fit.
    fn whole_turns(&self, from: usize, places: &[bool]) -> Option<usize> {
        let all = || (0..places.len()).filter(|&at| places[at]);
        all()
            .find(|&at| at >= from && self.fits(at))
            .or_else(|| all().rfind(|&at| at < from && self.fits(at)))
            .or_else(|| all().next_back().filter(|&at| self.fits_shortened(at)))
    }

    fn fits(&self, cut: usize) -> bool {
        self.has_room(self.kept[cut], self.staying[cut])
    }

    fn fits_shortened(&self, cut: usize) -> bool {
        self.has_room(self.least[cut], self.staying[cut])
    }

    fn has_room(&self, kept: Tokens, staying: Tokens) -> bool {
        kept <= self.room.kept && kept + staying <= self.room.messages
    }
}
