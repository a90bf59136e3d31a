//! Shortens a text to its budget.

use ctx_core::Tokens;

use crate::SAFETY_MARGIN;

use super::SummaryWriter;
use crate::ladder::gauge::Gauge;

/// The maximum number of times a text that is too long is summarised again.
const ROUNDS: usize = 2;

/// A text over its budget by less than this factor loses some lines instead: a call would cost more
/// than they are worth.
const TOLERANCE: f64 = 1.25;

impl SummaryWriter<'_, '_> {
    /// Fits the text into `budget` tokens: unchanged, summarised again, or trimmed at line ends.
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
            let limit = self.budget.merge.scale(1.0 / SAFETY_MARGIN) - Tokens(16);
            let shown = self.gauge.trimmed(&text, limit);
            let max = budget.min(self.budget.answer);
            let request = self.prompts.condense(&shown, max);
            match self.ask(&format!("{task}, shorter"), &request).await {
                Ok(shorter) if gauge.text(&shorter) < size => text = shorter,
                // The first text is still the best one.
                _ => break,
            }
        }
        gauge.trimmed(&text, budget)
    }
}
