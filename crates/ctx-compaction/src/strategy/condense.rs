//! Bringing a text inside its budget.

use ctx_core::Tokens;

use super::Desk;
use crate::SAFETY_MARGIN;
use crate::trim::trimmed;

/// How often a text that is too long is summarised again.
const ROUNDS: usize = 2;

/// A text over its budget by less than this loses some lines instead: a call costs more than they
/// are worth.
const TOLERANCE: f64 = 1.25;

impl Desk<'_, '_> {
    /// The text in at most `budget` tokens: as it is, summarised again, or trimmed at line ends.
    pub(super) async fn fitted(&self, mut text: String, budget: Tokens, task: &str) -> String {
        let counter = &self.job.counter;
        for _ in 0..ROUNDS {
            let size = self.count(&text);
            if size <= budget.scale(TOLERANCE) {
                break;
            }
            let room = self.room.merge.scale(1.0 / SAFETY_MARGIN) - Tokens(16);
            let shown = trimmed(&text, room, counter);
            let max = budget.min(self.room.answer);
            let request = self.prompts.condense(&shown, max);
            match self.ask(&format!("{task}, shorter"), &request).await {
                Ok(shorter) if self.count(&shorter) < size => text = shorter,
                // The first text is still the best there is.
                _ => break,
            }
        }
        trimmed(&text, budget, counter)
    }
}
