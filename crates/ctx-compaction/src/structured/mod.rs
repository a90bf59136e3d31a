//! A summary in six fields, and what a split turn adds to it.
//!
//! The headings are pi's. A summary of another system is read into the same fields, so that the
//! next compaction can go on from it whoever wrote it.

mod headings;
mod line;
mod parse;
mod render;

pub(crate) use headings::{Place, place as heading_place};
pub use line::Line;
pub use render::TURN_CONTEXT_HEADING;

/// A part of a [`StructuredSummary`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Field {
    /// What the user wants.
    Goal,
    /// What the user demands or forbids.
    Constraints,
    /// What is finished.
    Done,
    /// What was begun.
    InProgress,
    /// What cannot go on, and why.
    Blocked,
    /// What was decided, with reasons.
    Decisions,
    /// What is to be done next.
    NextSteps,
    /// What one must know to go on.
    CriticalContext,
}

impl Field {
    /// All fields, in the order in which they are written.
    pub const ALL: [Self; 8] = [
        Self::Goal,
        Self::Constraints,
        Self::Done,
        Self::InProgress,
        Self::Blocked,
        Self::Decisions,
        Self::NextSteps,
        Self::CriticalContext,
    ];
}

/// The three states of work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// What is finished.
    pub done: Vec<Line>,
    /// What was begun.
    pub in_progress: Vec<Line>,
    /// What cannot go on, and why.
    pub blocked: Vec<Line>,
}

/// The beginning of a turn whose end is still in the window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TurnPrefix {
    /// What the user asked for in this turn, line by line.
    pub original_request: Vec<String>,
    /// What was done before the cut.
    pub early_progress: Vec<Line>,
    /// What one must know to understand the rest of the turn.
    pub context_for_suffix: Vec<Line>,
}

/// A summary in six fields: Goal, Constraints & Preferences, Progress, Key Decisions, Next Steps,
/// Critical Context.
///
/// ```
/// use ctx_compaction::StructuredSummary;
///
/// let summary = StructuredSummary::parse("## 目标\n- 登录 [e:7]\n\n## Open TODOs\n- [ ] tests");
/// assert_eq!(summary.goal[0].text, "登录");
/// assert_eq!(&*summary.goal[0].cites[0], "7");
/// assert_eq!(summary.render(), "## Goal\n- 登录 [e:7]\n\n## Next Steps\n1. tests");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StructuredSummary {
    /// What the user wants.
    pub goal: Vec<Line>,
    /// What the user demands or forbids.
    pub constraints: Vec<Line>,
    /// What is finished, begun and blocked.
    pub progress: Progress,
    /// What was decided, with reasons.
    pub decisions: Vec<Line>,
    /// What is to be done next, in order.
    pub next_steps: Vec<Line>,
    /// What one must know to go on.
    pub critical_context: Vec<Line>,
    /// The beginning of a split turn.
    pub turn: Option<TurnPrefix>,
}

impl StructuredSummary {
    /// Reads a summary of any form: headings of pi, OpenClaw, CoPaw and Claude Code, English and
    /// Chinese, in Markdown or as `Name:`. What stands under no such heading becomes Critical
    /// Context. `(none)` and blank lines go; nothing else is lost.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        parse::parse(text)
    }

    /// The summary as Markdown under pi's headings. Empty fields are left out.
    #[must_use]
    pub fn render(&self) -> String {
        render::render(self)
    }

    /// The lines of a field.
    #[must_use]
    pub fn lines(&self, field: Field) -> &[Line] {
        match field {
            Field::Goal => &self.goal,
            Field::Constraints => &self.constraints,
            Field::Done => &self.progress.done,
            Field::InProgress => &self.progress.in_progress,
            Field::Blocked => &self.progress.blocked,
            Field::Decisions => &self.decisions,
            Field::NextSteps => &self.next_steps,
            Field::CriticalContext => &self.critical_context,
        }
    }

    /// The lines of a field, to be changed.
    pub fn lines_mut(&mut self, field: Field) -> &mut Vec<Line> {
        match field {
            Field::Goal => &mut self.goal,
            Field::Constraints => &mut self.constraints,
            Field::Done => &mut self.progress.done,
            Field::InProgress => &mut self.progress.in_progress,
            Field::Blocked => &mut self.progress.blocked,
            Field::Decisions => &mut self.decisions,
            Field::NextSteps => &mut self.next_steps,
            Field::CriticalContext => &mut self.critical_context,
        }
    }

    /// Whether there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.turn.is_none() && Field::ALL.iter().all(|&field| self.lines(field).is_empty())
    }
}
