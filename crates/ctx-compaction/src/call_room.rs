//! How much of what fits into one call.

use ctx_core::Tokens;

use crate::{SAFETY_MARGIN, SUMMARIZATION_OVERHEAD_TOKENS};

/// Less room for history than this is not worth a call.
const LEAST_CHUNK: Tokens = Tokens(256);

/// The parts of a model's window in one call. All of them together are never more than the window,
/// also when the counter is a sixth too low.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CallRoom {
    /// The longest answer.
    pub(crate) answer: Tokens,
    /// The longest earlier summary.
    pub(crate) previous: Tokens,
    /// The largest chunk of history, its margin included.
    pub(crate) chunk: Tokens,
    /// What is to be merged or shortened may be as large as this, its margin included.
    pub(crate) merge: Tokens,
}

impl CallRoom {
    /// Shares out `window`: the answer may be `budget` and at most a quarter of it, `fixed` is what
    /// is said in each prompt, `previous` measures the earlier summary, and a chunk is at most
    /// `ratio` of the window less [`SUMMARIZATION_OVERHEAD_TOKENS`], half of it in small windows;
    /// all that is left where no ratio is given. `None` where nothing is left.
    pub(crate) fn of(
        window: Tokens,
        budget: Tokens,
        fixed: Tokens,
        previous: Tokens,
        ratio: Option<f64>,
    ) -> Option<Self> {
        let answer = budget.min(window.scale(0.25));
        // A summary so far is as long as an answer can be.
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
            CallRoom::of(Tokens(200_000), Tokens(13_107), Tokens(800), Tokens(0), ratio).unwrap()
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
                        let Some(room) = CallRoom::of(window, budget, Tokens(700), previous, ratio)
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
