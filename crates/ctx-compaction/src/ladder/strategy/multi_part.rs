//! Summarises parts in parallel, then merges them.

use std::ops::Range;

use ctx_core::Tokens;
use futures_util::future::try_join_all;

use crate::{SAFETY_MARGIN, split_by_token_share};

use super::SummaryWriter;
use crate::ladder::calls::Failure;

/// The maximum number of rounds that merge part summaries. Each at least halves their number.
const MERGE_ROUNDS: usize = 5;

/// The minimum budget of a part, however many there are.
const LEAST_PART: Tokens = Tokens(256);

impl SummaryWriter<'_, '_> {
    /// Summarises a range in parts of about equal size. Each part is one chunk or is rolled up; the
    /// previous summary is an additional part.
    pub(super) async fn multi_part(
        &self,
        range: Range<usize>,
        budget: Tokens,
    ) -> Result<String, Failure> {
        let config = &self.job.config;
        let sizes = self.messages.sizes().get(range.clone()).unwrap_or_default();
        let groups = self.messages.groups(range.clone());
        let ratio = config.chunk_ratio.parts(sizes, self.model.window());
        let parts = ratio.max(config.parts as usize);
        let least = config.min_messages_for_split as usize;
        let ranges: Vec<_> = split_by_token_share(sizes, groups, parts, least)
            .into_iter()
            .map(|part| range.start + part.start..range.start + part.end)
            .filter(|part| self.messages.has_text(part.clone()))
            .collect();
        let all = ranges.len();
        if all <= 1 {
            let previous = self.previous.clone();
            return self.roll(self.subject, range, previous, budget, "summary").await;
        }
        // Together the parts may be 1.5 times the whole, as merging removes what they share.
        let share = budget.scale(1.5 / all as f64).max(LEAST_PART).min(budget);
        let written = ranges.into_iter().enumerate().map(async |(n, part)| {
            let task = format!("part {} of {all}", n + 1);
            self.roll(self.subject, part, None, share, &task).await
        });
        let written = try_join_all(written).await?;
        let parts = self.previous.clone().into_iter().chain(written).collect();
        Ok(self.merged(parts, budget).await)
    }

    /// Merges several summaries into one. If a merge fails, the parts are concatenated: they exist
    /// and are paid for.
    async fn merged(&self, mut parts: Vec<String>, budget: Tokens) -> String {
        let max = budget.min(self.budget.answer);
        for _ in 0..MERGE_ROUNDS {
            if parts.len() <= 1 {
                break;
            }
            let batches = self.batches(parts.clone());
            let merges = batches.into_iter().map(async |mut batch| match batch.len() {
                0 | 1 => Ok(batch.pop().unwrap_or_default()),
                _ => {
                    let merged = self.ask("merge", &self.prompts.merge(&batch, max)).await?;
                    Ok(self.fitted(merged, max, "merge").await)
                }
            });
            match try_join_all(merges).await {
                Ok(merged) => parts = merged,
                Err::<_, Failure>(failure) => {
                    let (name, reason) = (self.model.name(), failure.reason());
                    self.calls.note(format!("{name}: parts were joined, not merged: {reason}"));
                    break;
                }
            }
        }
        self.fitted(parts.join("\n\n"), budget, "merge").await
    }

    /// Batches neighbours that fit into one call; always at least two, truncated if necessary.
    fn batches(&self, parts: Vec<String>) -> Vec<Vec<String>> {
        let limit = self.budget.merge.scale(1.0 / SAFETY_MARGIN);
        let mut batches: Vec<Vec<String>> = Vec::new();
        let mut size = Tokens::ZERO;
        for part in parts {
            // The surrounding tags are about ten tokens.
            let part = self.gauge.trimmed(&part, limit.scale(0.5) - Tokens(16));
            let tokens = self.gauge.text(&part) + Tokens(16);
            match batches.last_mut() {
                Some(batch) if size + tokens <= limit => {
                    size += tokens;
                    batch.push(part);
                }
                _ => {
                    size = tokens;
                    batches.push(vec![part]);
                }
            }
        }
        batches
    }
}
