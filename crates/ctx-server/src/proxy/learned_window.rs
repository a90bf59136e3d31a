//! Learns the window of a model from the provider's refusals.

use ctx_core::Tokens;

/// The smallest plausible window; a smaller number in a refusal means something else.
const LEAST: Tokens = Tokens(1_024);

/// The learned window.
///
/// A limit reported by the provider is believed if it is plausible for the size of the refused
/// request. A limit below an accepted request must be reported twice. Without a reported limit,
/// smaller sizes are tried. Such a size is learned only if it was accepted: the refusal may have
/// had other causes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LearnedWindow {
    known: Option<Tokens>,
    tried: Option<Tokens>,
    /// The largest accepted request.
    taken: Tokens,
    /// A reported limit that was not believed. Sizes tried because of it are not learned.
    doubted: Option<Tokens>,
}

/// A refused request.
#[derive(Clone, Copy, Debug)]
pub(super) struct RefusedRequest {
    /// Its size, including the maximum answer.
    pub(super) tokens: Tokens,
    /// The limit reported by the provider.
    pub(super) limit: Option<Tokens>,
    /// The size to try next if none is reported.
    pub(super) next: Tokens,
}

impl LearnedWindow {
    /// Returns the window that the request must fit.
    pub(super) fn window(self) -> Option<Tokens> {
        lesser(self.known, self.tried)
    }

    /// Records a window reported by the server on request.
    pub(super) fn report(&mut self, window: Tokens) {
        self.known = lesser(self.known, Some(window).filter(|window| *window >= LEAST));
    }

    /// Records a refusal, and updates the window.
    pub(super) fn refused(&mut self, refused: RefusedRequest) {
        let is_plausible = |limit: &Tokens| (LEAST..=refused.tokens.scale(2.0)).contains(limit);
        match refused.limit.filter(is_plausible) {
            Some(limit) if limit >= self.taken || self.doubted == Some(limit) => {
                self.known = lesser(self.known, Some(limit));
            }
            plausible => {
                self.doubted = refused.limit.or(self.doubted);
                self.tried = lesser(self.tried, plausible.or(Some(refused.next)));
            }
        }
    }

    /// Records an accepted request.
    pub(super) fn accepted(&mut self, tokens: u64) {
        self.taken = self.taken.max(Tokens::saturating_from(tokens));
    }

    /// Records whether the tried size was accepted.
    pub(super) fn settle(&mut self, was_taken: bool) {
        let tried = self.tried.take().filter(|_| was_taken && self.doubted.is_none());
        self.known = lesser(self.known, tried);
    }
}

fn lesser(a: Option<Tokens>, b: Option<Tokens>) -> Option<Tokens> {
    a.into_iter().chain(b).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(limit: Option<u32>, next: u32) -> RefusedRequest {
        RefusedRequest { tokens: Tokens(10_000), limit: limit.map(Tokens), next: Tokens(next) }
    }

    #[test]
    fn a_tried_size_is_learned_only_if_accepted() {
        let mut learned = LearnedWindow::default();
        learned.refused(refused(None, 9_000));
        assert_eq!(learned.window(), Some(Tokens(9_000)));
        learned.settle(false);
        assert_eq!(learned, LearnedWindow::default());
        learned.refused(refused(Some(8_000), 9_000));
        learned.refused(refused(None, 5_000));
        learned.settle(false);
        assert_eq!(learned.window(), Some(Tokens(8_000)));
        learned.refused(refused(None, 5_000));
        learned.settle(true);
        assert_eq!(learned.window(), Some(Tokens(5_000)));
    }

    #[test]
    fn an_implausible_limit_is_ignored() {
        for limit in [0, 1, 1_000, 20_001, 1_000_000_000, u32::MAX] {
            let mut learned = LearnedWindow::default();
            learned.refused(refused(Some(limit), 9_000));
            assert_eq!(learned.window(), Some(Tokens(9_000)), "{limit}");
            learned.settle(true);
            assert_eq!(learned.window(), None, "{limit}");
        }
    }

    #[test]
    fn a_limit_below_an_accepted_request_must_be_reported_twice() {
        let mut learned = LearnedWindow::default();
        learned.accepted(9_500);
        for lasts in [false, true] {
            learned.refused(refused(Some(4_000), 9_000));
            assert_eq!(learned.window(), Some(Tokens(4_000)));
            learned.settle(true);
            assert_eq!(learned.window().is_some(), lasts);
        }
    }
}
