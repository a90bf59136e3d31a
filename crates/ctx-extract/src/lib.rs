//! The extractive summariser: builds a summary from the transcript alone.
//!
//! All its content is from the transcript: sentences verbatim, commands with the line of output
//! that gives their result, the tasks of the agent's own list. ctx adds only headings and a few
//! fixed labels (`Latest:`, `Earlier:`).
//!
//! First, candidate notes are collected with a weight (`user`, `talk`, `work`, `earlier`), then the
//! budget goes to those of highest weight (`fill`).

#![forbid(unsafe_code)]

mod agreement;
mod earlier;
mod ended;
mod fill;
mod focus;
mod note;
mod prose;
mod replaced;
mod reverted;
mod structured;
mod talk;
mod todos;
mod turns;
mod user;
mod voice;
mod work;
mod working_state;

use ctx_core::{Counter, Tokens};

use ctx_facts::{CitedMessage, LedgerFacts, PreviousSummary};

pub use structured::{
    Field, Place, StructuredSummary, SummaryLine, TURN_CONTEXT_HEADING, TurnPlace, TurnPrefix,
    heading_place, without_blocks,
};
pub use working_state::{WORKING_STATE_TAGS, WorkingState};

/// The input and the budget of an extractive summary.
#[derive(Clone, Copy, Debug)]
pub struct ExtractInput<'a> {
    /// The messages, oldest first.
    pub messages: &'a [CitedMessage],
    /// The facts of these messages, and of the messages that the previous summary covers.
    pub facts: &'a LedgerFacts,
    /// The tasks of the whole session; without it, those of these messages.
    pub state: Option<&'a WorkingState>,
    /// The summary of the history before them.
    pub previous: Option<&'a PreviousSummary>,
    /// The start of a split turn: `messages[turn_start..]` is its prefix.
    pub turn_start: Option<usize>,
    /// The user's focus for the summary.
    pub focus: Option<&'a str>,
    /// The maximum size of the summary.
    pub budget: Tokens,
    /// The counter for its size.
    pub counter: &'a Counter,
}

/// Writes a summary from the transcript alone: deterministic, no network, cannot fail.
///
/// It is Markdown under the headings of [`StructuredSummary`], never
/// exceeds the budget, and every line cites its source entries as `[e:ID]`. The user's words come
/// first and stay verbatim; if not all fit, the oldest are dropped. The caller appends the lists of
/// files read and modified.
#[must_use]
pub fn extract(job: &ExtractInput<'_>) -> String {
    Candidates::of(job).within(job.budget)
}

/// The candidate lines of a summary, for drafts of several sizes.
#[derive(Debug)]
pub struct Candidates<'a> {
    job: &'a ExtractInput<'a>,
    turns: Vec<turns::Turn>,
    /// Without duplicates, those of highest weight first.
    notes: Vec<note::Note>,
}

impl<'a> Candidates<'a> {
    /// Reads the messages.
    #[must_use]
    pub fn of(job: &'a ExtractInput<'a>) -> Self {
        let turns = turns::turns(job.messages);
        let mut notes = user::notes(job, &turns);
        notes.extend(talk::notes(job, &turns));
        notes.extend(work::notes(job, &turns));
        notes.extend(talk::of_facts(job));
        let mut notes = earlier::merge(job, &turns, notes);
        earlier::settle(&mut notes);
        reverted::take_back(job, &turns, &mut notes);
        let mut notes = fill::distinct(focus::apply(job, notes));
        replaced::drop_replaced(&mut notes);
        Self { job, turns, notes }
    }

    /// Writes the summary within a budget.
    pub fn within(&self, budget: Tokens) -> String {
        let job = ExtractInput { budget, ..*self.job };
        fill::fill(&job, &self.turns, self.notes.clone())
    }
}
