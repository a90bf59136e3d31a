//! The token budget of one call.

use ctx_core::Tokens;

use crate::{SAFETY_MARGIN, SUMMARIZATION_OVERHEAD_TOKENS};

/// With less budget for history than this, a call is not made.
const LEAST_CHUNK: Tokens = Tokens(256);

/// The shares of a model's context window in one call. Their total fits the window even if the
/// counter is a sixth too low.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CallBudget {
    /// The maximum answer.
    pub(crate) answer: Tokens,
    /// The maximum earlier summary.
    pub(crate) previous: Tokens,
    /// The maximum chunk of history, its margin included.
    pub(crate) chunk: Tokens,
    /// The maximum text to merge or shorten, its margin included.
    pub(crate) merge: Tokens,
}

impl CallBudget {
    /// Divides `window`. The answer gets `budget`, at most a quarter of the window. `fixed` is the
    /// size of the instructions in each prompt, `previous` that of the earlier summary. A chunk
    /// gets at most `ratio` of the window less [`SUMMARIZATION_OVERHEAD_TOKENS`] (in small windows
    /// half of it), or all that is left without a ratio. `None` if nothing is left.
    pub(crate) fn of(
        window: Tokens,
        budget: Tokens,
        fixed: Tokens,
        previous: Tokens,
        ratio: Option<f64>,
    ) -> Option<Self> {
        let answer = budget.min(window.scale(0.25));
        // The summary so far can be as long as an answer.
        let previous = previous.min(window.scale(0.25)).max(answer);
        let merge = window - answer - fixed.scale(SAFETY_MARGIN);
        let left = merge - previous.scale(SAFETY_MARGIN);
        let chunk = match ratio {
            None => left,
            Some(ratio) => {
                let share = window.scale(ratio);
                left.min(share - SUMMARIZATION_OVERHEAD_TOKENS.min(share.scale(0.5)))
            }
        };
        (chunk >= LEAST_CHUNK).then_some(Self { answer, previous, chunk, merge })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_is_its_share_of_the_window_less_the_overhead() {
        let room = |ratio| {
            CallBudget::of(Tokens(200_000), Tokens(13_107), Tokens(800), Tokens(0), ratio).unwrap()
        };
        // 0.32 of 200,000 is the seed's 64,000.
        assert_eq!(room(Some(0.32)).chunk, Tokens(64_000 - 4_096));
        assert_eq!(room(Some(0.32)).answer, Tokens(13_107));
        assert_eq!(room(None).chunk, Tokens(200_000 - 13_107 - 960 - 15_728));
    }

    #[test]
    fn the_parts_fit_together_in_every_window() {
        for window in (0..40_000).step_by(250) {
            for budget in [0, 128, 1_000, 20_000] {
                for previous in [0, 500, 90_000] {
                    for ratio in [None, Some(0.15), Some(0.4), Some(f64::NAN)] {
                        let [window, budget, previous] = [window, budget, previous].map(Tokens);
                        let Some(room) =
                            CallBudget::of(window, budget, Tokens(700), previous, ratio)
                        else {
                            assert!(window < Tokens(8_000) || ratio.is_some_and(f64::is_nan));
                            continue;
                        };
                        let parts = room.previous.scale(SAFETY_MARGIN) + Tokens(840) + room.chunk;
                        assert!(parts + room.answer <= window, "{window} {room:?}");
                        assert!(room.merge + Tokens(840) + room.answer <= window, "{room:?}");
                    }
                }
            }
        }
    }
}
