//! Bringing a text inside its budget.

use ctx_core::Tokens;

use super::Desk;
use crate::SAFETY_MARGIN;
use crate::gauge::Gauge;

/// How often a text that is too long is summarised again.
const ROUNDS: usize = 2;

/// A text over its budget by less than this loses some lines instead: a call costs more than they
/// are worth.
const TOLERANCE: f64 = 1.25;

impl Desk<'_, '_> {
    /// The text in at most `budget` tokens: as it is, summarised again, or trimmed at line ends.
    pub(super) async fn fitted(&self, text: String, budget: Tokens, task: &str) -> String {
        self.fitted_by(&Gauge::by(self.job.counter), text, budget, task).await
    }

    /// The same, counted by `gauge`.
    pub(super) async fn fitted_by(
        &self,
        gauge: &Gauge,
        mut text: String,
        budget: Tokens,
        task: &str,
    ) -> String {
        for _ in 0..ROUNDS {
            let size = gauge.text(&text);
            if size <= budget.scale(TOLERANCE) {
                break;
            }
            let room = self.room.merge.scale(1.0 / SAFETY_MARGIN) - Tokens(16);
            let shown = self.gauge.trimmed(&text, room);
            let max = budget.min(self.room.answer);
            let request = self.prompts.condense(&shown, max);
            match self.ask(&format!("{task}, shorter"), &request).await {
                Ok(shorter) if gauge.text(&shorter) < size => text = shorter,
                // The first text is still the best there is.
                _ => break,
            }
        }
        gauge.trimmed(&text, budget)
    }
}
