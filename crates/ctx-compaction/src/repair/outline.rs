//! The lines of a summary and what they are.

use std::ops::Range;

use crate::structured::{Field, Place, TURN_CONTEXT_HEADING, heading_place};

/// What a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// A heading of Markdown.
    Heading,
    /// The mark of a block: `<read-files>`, a code fence, the rule before a split turn's context.
    Mark,
    /// Words.
    Words,
    /// Nothing.
    Blank,
}

/// A line of a summary.
#[derive(Clone, Debug)]
pub(super) struct Line {
    /// Where it stands, its line break included.
    pub(super) range: Range<usize>,
    pub(super) part: Part,
    /// The field it belongs to, by the heading above it.
    pub(super) field: Option<Field>,
    /// Whether it is a line of code; a fence goes as a whole or stays.
    pub(super) fence: Option<usize>,
    /// Whether it stands in a list of files.
    pub(super) in_files: bool,
    /// Whether it belongs to the context of a split turn.
    pub(super) in_turn: bool,
}

/// A summary, line by line.
#[derive(Clone, Debug)]
pub(super) struct Outline<'a> {
    pub(super) text: &'a str,
    pub(super) lines: Vec<Line>,
}

impl<'a> Outline<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        let turn_mark = TURN_CONTEXT_HEADING.trim().trim_start_matches('-').trim();
        let mut lines: Vec<Line> = Vec::new();
        let (mut at, mut fences) = (0, 0);
        let (mut field, mut fence, mut in_files, mut in_turn) = (None, None, false, false);
        for raw in text.split_inclusive('\n') {
            let range = at..at + raw.len();
            at = range.end;
            let bare = raw.trim();
            let mut part = if bare.is_empty() { Part::Blank } else { Part::Words };
            let mut own_fence = fence;
            if bare.starts_with("```") || bare.starts_with("~~~") {
                part = Part::Mark;
                if fence.take().is_none() {
                    fences += 1;
                    (fence, own_fence) = (Some(fences), Some(fences));
                }
            } else if fence.is_none() {
                if matches!(bare, "<read-files>" | "<modified-files>") {
                    (part, in_files) = (Part::Mark, true);
                } else if matches!(bare, "</read-files>" | "</modified-files>") {
                    part = Part::Mark;
                } else if bare == "---" || (!turn_mark.is_empty() && bare == turn_mark) {
                    part = Part::Mark;
                    in_turn |= bare == turn_mark;
                } else if bare.starts_with('#') && bare.trim_start_matches('#').starts_with(' ') {
                    part = Part::Heading;
                    let level = bare.bytes().take_while(|&b| b == b'#').count();
                    field = match heading_place(bare) {
                        Some(Place::Field(field)) => Some(field),
                        Some(Place::Progress) => Some(Field::Done),
                        Some(_) => None,
                        None if level > 2 => field,
                        None => None,
                    };
                }
            }
            lines.push(Line { range, part, field, fence: own_fence, in_files, in_turn });
            if bare.starts_with("</") && part == Part::Mark {
                in_files = false;
            }
        }
        Self { text, lines }
    }

    /// The words of a line.
    pub(super) fn words(&self, line: &Line) -> &'a str {
        self.text.get(line.range.clone()).unwrap_or_default()
    }

    /// Behind which line words of a field go: the last that belongs to it, if it has a heading.
    pub(super) fn end_of(&self, field: Field) -> Option<usize> {
        let own = |line: &Line| {
            line.field == Some(field) && !line.in_files && !line.in_turn && line.fence.is_none()
        };
        let plain = |line: &Line| matches!(line.part, Part::Heading | Part::Words);
        let last = self.lines.iter().rposition(|line| own(line) && plain(line))?;
        // A fence or a rule may follow in the same section; words go before it.
        Some(last)
    }

    /// Before which line a new section goes: the context of a split turn, a list of files, the end.
    pub(super) fn end_of_sections(&self) -> usize {
        let first = self.lines.iter().position(|line| {
            line.in_files
                || line.in_turn
                || (line.part == Part::Mark && self.words(line).trim() == "---")
        });
        let Some(mut first) = first else { return self.lines.len() };
        // A rule alone ends nothing unless the turn's context follows.
        if self.lines.get(first).is_some_and(|line| !line.in_files && !line.in_turn) {
            let turn = self.lines.iter().position(|line| line.in_turn || line.in_files);
            let Some(turn) = turn else { return self.lines.len() };
            let between = self.lines.get(first + 1..turn).unwrap_or_default();
            if between.iter().any(|line| line.part != Part::Blank) {
                first = turn;
            }
        }
        first
    }
}
