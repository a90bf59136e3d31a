//! What a provider's refusals taught about the window of a model.

use ctx_core::Tokens;

/// No model takes less; who names less names something else.
const LEAST: Tokens = Tokens(1_024);

/// The window as far as refusals told of it.
///
/// A provider that names its limit is believed, where it can be: where it is of the size of what was
/// refused. One that is less than what went through before has to be named twice. Where none is named,
/// something smaller is tried: that holds only if it was taken, because a refusal may have had other
/// causes than the history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Learned {
    known: Option<Tokens>,
    tried: Option<Tokens>,
    /// The most that went through.
    taken: Tokens,
    /// A limit that was named and not believed. What is tried because of it teaches nothing.
    doubted: Option<Tokens>,
}

/// What a provider refused.
#[derive(Clone, Copy, Debug)]
pub(super) struct Refused {
    /// What it measured, with the most that the answer may hold.
    pub(super) tokens: Tokens,
    /// The limit that the provider named.
    pub(super) limit: Option<Tokens>,
    /// What is tried next, where none is named.
    pub(super) next: Tokens,
}

impl Learned {
    /// The window that a request is to fit.
    pub(super) fn window(self) -> Option<Tokens> {
        smaller(self.known, self.tried)
    }

    /// Notes a window that the server tells when it is asked.
    pub(super) fn told(&mut self, window: Tokens) {
        self.known = smaller(self.known, Some(window).filter(|window| *window >= LEAST));
    }

    /// Notes a refusal, and the window that it leaves.
    pub(super) fn refused(&mut self, refused: Refused) {
        let can_be = |limit: &Tokens| (LEAST..=refused.tokens.scale(2.0)).contains(limit);
        match refused.limit.filter(can_be) {
            Some(limit) if limit >= self.taken || self.doubted == Some(limit) => {
                self.known = smaller(self.known, Some(limit));
            }
            believable => {
                self.doubted = refused.limit.or(self.doubted);
                self.tried = smaller(self.tried, believable.or(Some(refused.next)));
            }
        }
    }

    /// Notes what went through.
    pub(super) fn took(&mut self, tokens: u64) {
        self.taken = self.taken.max(Tokens::saturating_from(tokens));
    }

    /// Notes what became of what was tried.
    pub(super) fn settle(&mut self, was_taken: bool) {
        let tried = self.tried.take().filter(|_| was_taken && self.doubted.is_none());
        self.known = smaller(self.known, tried);
    }
}

fn smaller(a: Option<Tokens>, b: Option<Tokens>) -> Option<Tokens> {
    a.into_iter().chain(b).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(limit: Option<u32>, next: u32) -> Refused {
        Refused { tokens: Tokens(10_000), limit: limit.map(Tokens), next: Tokens(next) }
    }

    #[test]
    fn what_was_tried_holds_only_where_it_was_taken() {
        let mut learned = Learned::default();
        learned.refused(refused(None, 9_000));
        assert_eq!(learned.window(), Some(Tokens(9_000)));
        learned.settle(false);
        assert_eq!(learned, Learned::default());
        learned.refused(refused(Some(8_000), 9_000));
        learned.refused(refused(None, 5_000));
        learned.settle(false);
        assert_eq!(learned.window(), Some(Tokens(8_000)));
        learned.refused(refused(None, 5_000));
        learned.settle(true);
        assert_eq!(learned.window(), Some(Tokens(5_000)));
    }

    #[test]
    fn a_limit_that_cannot_be_is_none_and_teaches_nothing() {
        for limit in [0, 1, 1_000, 20_001, 1_000_000_000, u32::MAX] {
            let mut learned = Learned::default();
            learned.refused(refused(Some(limit), 9_000));
            assert_eq!(learned.window(), Some(Tokens(9_000)), "{limit}");
            learned.settle(true);
            assert_eq!(learned.window(), None, "{limit}");
        }
    }

    #[test]
    fn a_limit_below_what_went_through_has_to_be_named_twice() {
        let mut learned = Learned::default();
        learned.took(9_500);
        for lasts in [false, true] {
            learned.refused(refused(Some(4_000), 9_000));
            assert_eq!(learned.window(), Some(Tokens(4_000)));
            learned.settle(true);
            assert_eq!(learned.window().is_some(), lasts);
        }
    }
}
