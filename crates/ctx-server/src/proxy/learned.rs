//! What a provider's refusals taught about the window of a model.

use ctx_core::Tokens;

/// The window as far as refusals told of it.
///
/// A provider that names its limit is believed. Where it names none, something smaller is tried:
/// that holds only if it was taken, because a refusal may have had other causes than the history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Learned {
    known: Option<Tokens>,
    tried: Option<Tokens>,
}

impl Learned {
    /// The window that a request is to fit.
    pub(super) fn window(self) -> Option<Tokens> {
        smaller(self.known, self.tried)
    }

    /// Notes a refusal, and the window that it leaves.
    pub(super) fn refused(&mut self, left: Tokens, is_named: bool) {
        let slot = if is_named { &mut self.known } else { &mut self.tried };
        *slot = smaller(*slot, Some(left));
    }

    /// Notes what became of what was tried.
    pub(super) fn settle(&mut self, was_taken: bool) {
        let tried = self.tried.take().filter(|_| was_taken);
        self.known = smaller(self.known, tried);
    }
}

fn smaller(a: Option<Tokens>, b: Option<Tokens>) -> Option<Tokens> {
    a.into_iter().chain(b).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_tried_holds_only_where_it_was_taken() {
        let mut learned = Learned::default();
        learned.refused(Tokens(9_000), false);
        assert_eq!(learned.window(), Some(Tokens(9_000)));
        learned.settle(false);
        assert_eq!(learned, Learned::default());
        learned.refused(Tokens(8_000), true);
        learned.refused(Tokens(5_000), false);
        learned.settle(false);
        assert_eq!(learned.window(), Some(Tokens(8_000)));
        learned.refused(Tokens(5_000), false);
        learned.settle(true);
        assert_eq!(learned.window(), Some(Tokens(5_000)));
    }
}
