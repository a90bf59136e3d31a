//! Summarises chunk by chunk, each time with the summary so far.

use std::collections::VecDeque;
use std::ops::Range;

use ctx_core::Tokens;

use crate::answer::Flaw;
use crate::prompts::Subject;

use super::SummaryWriter;
use crate::ladder::calls::Failure;
use crate::ladder::prompt_messages::truncated;

impl SummaryWriter<'_, '_> {
    /// Summarises a range. Each chunk is one call. No message is split between chunks.
    ///
    /// If an answer was truncated, the chunk is halved and tried once more.
    pub(super) async fn roll(
        &self,
        subject: Subject,
        range: Range<usize>,
        previous: Option<String>,
        budget: Tokens,
        task: &str,
    ) -> Result<String, Failure> {
        let chunks = self.messages.chunks(range, self.budget.chunk);
        let chunks = chunks.into_iter().filter(|chunk| self.messages.has_text(chunk.clone()));
        let mut queue: VecDeque<_> = chunks.map(|range| Chunk { range, is_half: false }).collect();
        let max = budget.min(self.budget.answer);
        let mut summary = previous;
        let mut done = 0;
        while let Some(chunk) = queue.pop_front() {
            done += 1;
            let all = done + queue.len();
            let task = match all {
                1 => task.to_owned(),
                _ => format!("{task}, chunk {done} of {all}"),
            };
            let text = self.messages.text(chunk.range.clone());
            let before = match &summary {
                Some(summary) => Some(self.shown(summary, &task).await),
                None => None,
            };
            let write = async |text: &str| {
                let request = self.prompts.summary(subject, text, before.as_deref(), max);
                self.ask(&task, &request).await
            };
            let answer = match write(&text).await {
                Err(Failure::Unusable(Flaw::CutOff)) if !chunk.is_half => {
                    if let Some(halves) = chunk.halves() {
                        done -= 1;
                        queue.push_front(halves[1].clone());
                        queue.push_front(halves[0].clone());
                        continue;
                    }
                    let half = self.gauge.text(&text).scale(0.5);
                    write(&truncated(&text, half, &self.gauge)).await?
                }
                answer => answer?,
            };
            summary = Some(self.fitted(answer, max, &task).await);
        }
        Ok(summary.unwrap_or_default())
    }

    /// Returns the earlier summary as shown to the model: all of it, if possible.
    async fn shown(&self, summary: &str, task: &str) -> String {
        if self.gauge.text(summary) <= self.budget.previous {
            return summary.to_owned();
        }
        let name = self.model.name();
        self.calls.note(format!("{name}: the previous summary was shortened to fit its window"));
        self.fitted_by(&self.gauge, summary.to_owned(), self.budget.previous, task).await
    }
}

#[derive(Clone)]
struct Chunk {
    range: Range<usize>,
    is_half: bool,
}

impl Chunk {
    fn halves(&self) -> Option<[Self; 2]> {
        let Range { start, end } = self.range;
        let middle = start + self.range.len() / 2;
        let half = |range| Self { range, is_half: true };
        (start < middle && middle < end).then(|| [half(start..middle), half(middle..end)])
    }
}
