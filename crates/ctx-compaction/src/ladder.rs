//! The ladder of models.

use ctx_core::SummaryModels;

use crate::{Draft, Job, Log};

/// Asks one model after another for a summary. `None`: no model gave one that can be used, and the
/// extractive summariser is next.
pub async fn ladder(job: &Job, models: &SummaryModels, log: &mut Log) -> Option<Draft> {
    let _ = (job, models);
    log.notes.push("no model was asked".to_owned());
    None
}

/// What stands for history of which no summary could be made.
#[must_use]
pub fn summary_unavailable(messages: usize, oversized: usize) -> String {
    format!("Context contained {messages} messages ({oversized} oversized). Summary unavailable.")
}
