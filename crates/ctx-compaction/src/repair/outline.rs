//! Classifies the lines of a summary.

use ctx_core::text::Slice;
use std::ops::Range;

use ctx_extract::{Field, Place, TURN_CONTEXT_HEADING, heading_place};

/// The type of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// A Markdown heading.
    Heading,
    /// A block marker: `<read-files>`, a code fence, the rule before a split turn's context.
    Mark,
    /// Text.
    Words,
    /// Empty.
    Blank,
}

/// A line of a summary.
#[derive(Clone, Debug)]
pub(super) struct OutlineLine {
    /// Its byte range, line break included.
    pub(super) range: Range<usize>,
    pub(super) part: Part,
    /// Its field, by the heading above it.
    pub(super) field: Option<Field>,
    /// The code fence that contains it, if any; a fence is removed or kept as a whole.
    pub(super) fence: Option<usize>,
    /// Whether it is in a file list.
    pub(super) in_files: bool,
    /// Whether it is in the context of a split turn.
    pub(super) in_turn: bool,
}

/// A summary, line by line.
#[derive(Clone, Debug)]
pub(super) struct Outline<'a> {
    pub(super) text: &'a str,
    pub(super) lines: Vec<OutlineLine>,
}

impl<'a> Outline<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        let turn_mark = TURN_CONTEXT_HEADING.trim().trim_start_matches('-').trim();
        let mut lines: Vec<OutlineLine> = Vec::new();
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
            lines.push(OutlineLine { range, part, field, fence: own_fence, in_files, in_turn });
            if bare.starts_with("</") && part == Part::Mark {
                in_files = false;
            }
        }
        Self { text, lines }
    }

    /// Returns the text of a line.
    pub(super) fn words(&self, line: &OutlineLine) -> &'a str {
        self.text.get(line.range.clone()).unwrap_or_default()
    }

    /// Returns the line after which new text of a field goes: its last line, if it has a heading.
    pub(super) fn end_of(&self, field: Field) -> Option<usize> {
        let own = |line: &OutlineLine| {
            line.field == Some(field) && !line.in_files && !line.in_turn && line.fence.is_none()
        };
        let plain = |line: &OutlineLine| matches!(line.part, Part::Heading | Part::Words);
        let last = self.lines.iter().rposition(|line| own(line) && plain(line))?;
        // A fence or a rule may follow in the same section; text goes before it.
        Some(last)
    }

    /// Returns the line before which a new section goes: the turn's context, a file list, the end.
    pub(super) fn end_of_sections(&self) -> usize {
        let after = self.lines.iter().position(|line| line.in_turn || line.in_files);
        let Some(after) = after else { return self.lines.len() };
        // A rule before the turn's context belongs to it.
        let before = self.lines.slice(..after);
        let rule = before.iter().rposition(|line| line.part != Part::Blank);
        let is_rule = |&at: &usize| {
            let line = before.get(at);
            line.is_some_and(|line| line.part == Part::Mark && self.words(line).trim() == "---")
        };
        rule.filter(is_rule).unwrap_or(after)
    }
}
