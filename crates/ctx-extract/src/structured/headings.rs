//! Maps headings to fields.

use super::Field;
use ctx_text::WordList;

/// The destination of the lines under a heading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A field.
    Field(Field),
    /// `Progress` itself: its subheadings or check boxes determine the field.
    Progress,
    /// The beginning of a split turn.
    Turn(TurnPlace),
    /// A heading around others, without content of its own.
    Frame,
}

/// A part of a split turn's prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnPlace {
    /// The user's request.
    Request,
    /// What was done before the cut.
    Early,
    /// What the rest of the turn needs.
    Suffix,
}

/// Returns the destination for a heading, if it is known.
pub fn place(name: &str) -> Option<Place> {
    let name = plain(name);
    // No known name is longer, and this runs on every line of an untrusted text.
    if name.is_empty() || name.len() > 60 {
        return None;
    }
    let name = name.to_lowercase();
    NAMES.iter().find(|(_, names)| names.contains(&name)).map(|(place, _)| *place)
}

/// Strips a heading of Markdown, numbering, brackets and colon.
pub(super) fn plain(name: &str) -> &str {
    let decoration = |c: char| {
        c.is_whitespace() || matches!(c, '#' | '*' | '_' | ':' | '：' | '【' | '】' | '`' | '=')
    };
    let name = name.trim_matches(decoration);
    let digits = name.trim_start_matches(|c: char| c.is_ascii_digit());
    let unnumbered = match digits.strip_prefix(['.', ')', '、']) {
        Some(rest) if digits.len() < name.len() => rest,
        _ => name,
    };
    unnumbered.trim_matches(|c: char| decoration(c) || !(c.is_alphanumeric() || c.is_ascii()))
}

use Field::{Blocked, Constraints, CriticalContext, Decisions, Done, Goal, InProgress, NextSteps};
use Place::Field as To;

/// Names in lower case: those of pi, of OpenClaw's two modes, of CoPaw, of Claude Code, and
/// variants that models write.
static NAMES: [(Place, WordList); 13] = [
    (To(Goal), WordList::new("section_headings.goal")),
    (To(Constraints), WordList::new("section_headings.constraints")),
    (Place::Progress, WordList::new("section_headings.progress")),
    (To(Done), WordList::new("section_headings.done")),
    (To(InProgress), WordList::new("section_headings.in_progress")),
    (To(Blocked), WordList::new("section_headings.blocked")),
    (To(Decisions), WordList::new("section_headings.decisions")),
    (To(NextSteps), WordList::new("section_headings.next")),
    (To(CriticalContext), WordList::new("section_headings.critical")),
    (Place::Turn(TurnPlace::Request), WordList::new("section_headings.request")),
    (Place::Turn(TurnPlace::Early), WordList::new("section_headings.early")),
    (Place::Turn(TurnPlace::Suffix), WordList::new("section_headings.suffix")),
    (Place::Frame, WordList::new("section_headings.frame")),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_are_known_however_they_are_dressed() {
        for (name, expected) in [
            ("## Goal", Some(To(Goal))),
            ("**Goal:**", Some(To(Goal))),
            ("1. Primary Request and Intent:", Some(To(Goal))),
            ("🎯 Goal", Some(To(Goal))),
            ("【目标】", Some(To(Goal))),
            ("一些话", None),
            ("### In Progress", Some(To(InProgress))),
            ("关键决策：", Some(To(Decisions))),
            ("2024", None),
            ("goal posts", None),
            ("", None),
            ("###", None),
        ] {
            assert_eq!(place(name), expected, "{name}");
        }
    }

    #[test]
    fn every_name_is_given_as_it_is_looked_up() {
        for (found, names) in &NAMES {
            for name in names.iter() {
                assert_eq!(place(name), Some(*found), "{name}");
            }
        }
    }
}
