//! What was wrong with a transcript, and how it was read all the same.

use std::fmt;

use serde::Serialize;

/// How many problems are kept one by one. Beyond that only their number is.
const MOST_KEPT: usize = 1_000;

/// What kind of damage was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum ProblemKind {
    /// No header line.
    MissingHeader,
    /// A header line that cannot be read.
    BrokenHeader,
    /// A second header line; it was left out.
    DuplicateHeader,
    /// A format version this build does not know; it was read as the newest known one.
    UnknownVersion,
    /// The last line is incomplete; it was left out.
    TornTail,
    /// No line break after the last line.
    NoFinalNewline,
    /// A line that is not JSON; it was left out.
    CorruptLine,
    /// A line that holds several objects; every whole one was taken.
    GluedLine,
    /// NUL bytes around a line; they were skipped.
    NulBytes,
    /// Bytes that are not UTF-8; they read as U+FFFD.
    InvalidUtf8,
    /// A line that stands in the file twice; the second was left out.
    DuplicateLine,
    /// An id that stands in the file twice with different content; the later entry got a fresh id.
    DuplicateId,
    /// An entry without an id; it got an ordinal.
    MissingId,
    /// A parent that is not in the file, or not before its child; the entry before it in the file
    /// was taken instead.
    BrokenParent,
    /// Empty lines; they were skipped.
    EmptyLines,
    /// Line breaks of two characters.
    CarriageReturns,
    /// A byte order mark at the beginning.
    ByteOrderMark,
    /// A document that ends too early; every whole message was taken.
    TornDocument,
    /// A piece of a document that cannot be read; the messages before and after it were taken.
    DamagedDocument,
    /// Values that JSON does not know (`NaN`, a raw control character), or a comma too many; read
    /// as near to it as JSON can say.
    MendedValue,
    /// More problems of these kinds than are listed one by one.
    More,
}

impl ProblemKind {
    /// The name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::MissingHeader => "missingHeader",
            Self::BrokenHeader => "brokenHeader",
            Self::DuplicateHeader => "duplicateHeader",
            Self::UnknownVersion => "unknownVersion",
            Self::TornTail => "tornTail",
            Self::NoFinalNewline => "noFinalNewline",
            Self::CorruptLine => "corruptLine",
            Self::GluedLine => "gluedLine",
            Self::NulBytes => "nulBytes",
            Self::InvalidUtf8 => "invalidUtf8",
            Self::DuplicateLine => "duplicateLine",
            Self::DuplicateId => "duplicateId",
            Self::MissingId => "missingId",
            Self::BrokenParent => "brokenParent",
            Self::EmptyLines => "emptyLines",
            Self::CarriageReturns => "carriageReturns",
            Self::ByteOrderMark => "byteOrderMark",
            Self::TornDocument => "tornDocument",
            Self::DamagedDocument => "damagedDocument",
            Self::MendedValue => "mendedValue",
            Self::More => "more",
        }
    }
}

/// One problem.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The line, counted from 1, where there is one.
    pub line: Option<u64>,
    /// What kind.
    pub kind: ProblemKind,
    /// What was found and what was done about it.
    pub text: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.text),
            None => f.write_str(&self.text),
        }
    }
}

/// The problems found so far.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    kept: Vec<Problem>,
    dropped: u64,
    once: Vec<ProblemKind>,
    pub(crate) bad_lines: u64,
}

impl Problems {
    pub(crate) fn note(&mut self, line: u64, kind: ProblemKind, text: impl Into<String>) {
        if self.kept.len() < MOST_KEPT {
            // Line 0 stands for the file as a whole.
            let line = (line > 0).then_some(line);
            self.kept.push(Problem { line, kind, text: text.into() });
        } else {
            self.dropped += 1;
        }
    }

    /// Notes a problem of the whole file the first time it is seen.
    pub(crate) fn note_once(&mut self, line: u64, kind: ProblemKind, text: &'static str) {
        if !self.once.contains(&kind) {
            self.once.push(kind);
            self.note(line, kind, text);
        }
    }

    /// Notes a line that is not clean JSON.
    pub(crate) fn bad_line(&mut self, line: u64, kind: ProblemKind, text: impl Into<String>) {
        self.bad_lines += 1;
        self.note(line, kind, text);
    }

    pub(crate) fn finish(mut self) -> (Vec<Problem>, u64) {
        if self.dropped > 0 {
            let line = self.kept.last().and_then(|p| p.line);
            let text = format!("{} more problems after this line", self.dropped);
            self.kept.push(Problem { line, kind: ProblemKind::More, text });
        }
        self.kept.shrink_to_fit();
        (self.kept, self.bad_lines)
    }
}
