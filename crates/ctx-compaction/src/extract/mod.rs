//! The extractive summariser: a summary from the transcript alone.
//!
//! Everything in it stands in the transcript: sentences in the words of those who said them,
//! commands with the line they ended on, the tasks of the agent's own list. What is ours are the
//! headings and a few fixed words before a line (`Latest:`, `Earlier:`).
//!
//! First all that may matter is noted with a weight (`talk`, `work`, `earlier`), then the room
//! is given to what weighs most (`fill`).

mod agreement;
mod clip;
mod demand;
mod earlier;
mod ended;
mod fill;
mod focus;
mod goal;
mod note;
mod prose;
mod reverted;
mod signal;
mod talk;
mod todos;
mod turns;
mod voice;
mod withdrawn;
mod words;
mod work;

use ctx_core::{Counter, Tokens};

use crate::{Fact, PreviousSummary, Said};

pub(crate) use clip::clip;

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
///
/// It is Markdown under the headings of [`StructuredSummary`](crate::StructuredSummary), never
/// larger than the budget, and every line cites the entries it rests on as `[e:ID]`. The lists of
/// files that were read and modified are the caller's to add.
#[must_use]
pub fn extract(job: &Extract<'_>) -> String {
    let turns = turns::turns(job.said);
    let mut notes = talk::notes(job, &turns);
    notes.extend(work::notes(job, &turns));
    notes.extend(talk::of_facts(job));
    reverted::drop_reverted(job, &mut notes);
    earlier::settle(&mut notes);
    let mut notes = earlier::merge(job, &turns, notes);
    withdrawn::drop_withdrawn(&turns, &mut notes);
    goal::fewer(&mut notes);
    fill::fill(job, &turns, focus::apply(job, notes))
}
