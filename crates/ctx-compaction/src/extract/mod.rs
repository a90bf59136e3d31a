//! The extractive summariser: a summary from the transcript alone.

use ctx_core::{Counter, Role, Tokens};

use crate::{Fact, Line, PreviousSummary, Said, StructuredSummary};

/// What is to be summarised, and in how many tokens.
#[derive(Clone, Copy, Debug)]
pub struct Extract<'a> {
    /// The messages, oldest first.
    pub said: &'a [Said],
    /// What must be kept of them.
    pub facts: &'a [Fact],
    /// What stands for the history before them.
    pub previous: Option<&'a PreviousSummary>,
    /// Where a split turn begins: `said[turn_start..]` is its beginning.
    pub turn_start: Option<usize>,
    /// What the reader wants to hear most about.
    pub focus: Option<&'a str>,
    /// The most the summary may measure.
    pub budget: Tokens,
    /// How it is measured.
    pub counter: &'a Counter,
}

/// Writes a summary from the transcript alone: deterministic, no network, cannot fail.
#[must_use]
pub fn extract(job: &Extract<'_>) -> String {
    let mut summary = match job.previous {
        Some(previous) => StructuredSummary::parse(&previous.text),
        None => StructuredSummary::default(),
    };
    let users = job.said.iter().rev().filter(|said| said.message.role == Role::User);
    for said in users {
        let text = said.message.plain_text();
        if let Some(line) = text.lines().find(|line| !line.trim().is_empty()) {
            summary.goal.push(Line::new(line.trim(), said.id.clone()));
        }
        let text = summary.render();
        if job.counter.text(&text) > job.budget {
            break;
        }
    }
    ctx_core::text::without_middle(&summary.render(), "[...]", job.budget, job.counter)
}
