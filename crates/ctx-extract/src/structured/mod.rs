//! A summary in six fields, and the context of a split turn.
//!
//! The headings are pi's. A summary of another system is parsed into the same fields, so that the
//! next compaction can continue from any system's summary.

mod headings;
mod line;
mod parse;
mod render;

pub use headings::{Place, TurnPlace, place as heading_place};
pub use line::SummaryLine;
pub use parse::without_blocks;
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
    /// Work in progress.
    InProgress,
    /// Blocked work, with the reason.
    Blocked,
    /// Decisions, with reasons.
    Decisions,
    /// The next steps.
    NextSteps,
    /// What is needed to continue.
    CriticalContext,
}

impl Field {
    /// All fields, in output order.
    pub(crate) const ALL: [Self; 8] = [
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

/// The beginning of a turn whose end is still in the context.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TurnPrefix {
    /// The user's request in this turn, line by line.
    pub original_request: Vec<String>,
    /// What was done before the cut.
    pub early_progress: Vec<SummaryLine>,
    /// What is needed to understand the rest of the turn.
    pub context_for_suffix: Vec<SummaryLine>,
}

/// A summary in six fields: Goal, Constraints & Preferences, Progress, Key Decisions, Next Steps,
/// Critical Context.
///
/// ```
/// use ctx_extract::{Field, StructuredSummary};
///
/// let summary = StructuredSummary::parse("## 目标\n- 登录 [e:7]\n\n## Open TODOs\n- [ ] tests");
/// let goal = &summary.lines(Field::Goal)[0];
/// assert_eq!((goal.text.as_str(), &*goal.cites[0]), ("登录", "7"));
/// assert_eq!(summary.render(), "## Goal\n- 登录 [e:7]\n\n## Next Steps\n1. tests");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StructuredSummary {
    /// The lines of each field, in the order of [`Field::ALL`].
    lines: [Vec<SummaryLine>; Field::ALL.len()],
    /// The beginning of a split turn.
    pub turn: Option<TurnPrefix>,
}

impl StructuredSummary {
    /// Returns the lines of a field.
    pub fn lines(&self, field: Field) -> &[SummaryLine] {
        &self.lines[field as usize]
    }

    /// Returns the lines of a field for modification.
    pub(crate) fn lines_mut(&mut self, field: Field) -> &mut Vec<SummaryLine> {
        &mut self.lines[field as usize]
    }
}
