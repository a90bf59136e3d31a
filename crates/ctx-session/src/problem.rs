//! What was wrong with a transcript, and how it was read all the same.

use std::fmt;

use ctx_core::EntryId;
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
    /// Most entries stand before their parent; they were put into the order of their links.
    Reordered,
    /// A compaction whose first kept entry is not before it on its branch; nothing before it is
    /// kept.
    BrokenCompaction,
    /// Something in the overlay that cannot be read, or that names what is not there; it was left
    /// out.
    DamagedOverlay,
    /// A tool result without a call before it.
    OrphanResult,
    /// A second result of the same call, on one branch or beside the first.
    DuplicateResult,
    /// A message of a role that no known agent writes.
    UnknownRole,
    /// A block of a type that this version does not know.
    UnknownBlock,
    /// An entry of a type that this version does not know.
    UnknownEntry,
    /// An escaped half of a surrogate pair; it reads as U+FFFD.
    LoneSurrogate,
    /// Values nested more than 128 deep, which many programs refuse.
    DeepNesting,
    /// A line of more than 16 MiB.
    LongLine,
    /// A time that is neither a number nor a date, or of no time that can be.
    BadTimestamp,
    /// Usage that is no number of tokens.
    BadUsage,
    /// More problems of these kinds than are listed one by one.
    More,
}

impl ProblemKind {
    /// Whether nothing is missing or changed for it: only who checks a file is told.
    #[must_use]
    pub fn is_harmless(self) -> bool {
        matches!(
            self,
            Self::NoFinalNewline | Self::EmptyLines | Self::CarriageReturns | Self::ByteOrderMark
        )
    }

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
            Self::Reordered => "reordered",
            Self::BrokenCompaction => "brokenCompaction",
            Self::DamagedOverlay => "damagedOverlay",
            Self::OrphanResult => "orphanResult",
            Self::DuplicateResult => "duplicateResult",
            Self::UnknownRole => "unknownRole",
            Self::UnknownBlock => "unknownBlock",
            Self::UnknownEntry => "unknownEntry",
            Self::LoneSurrogate => "loneSurrogate",
            Self::DeepNesting => "deepNesting",
            Self::LongLine => "longLine",
            Self::BadTimestamp => "badTimestamp",
            Self::BadUsage => "badUsage",
            Self::More => "more",
        }
    }

    /// Whether something was mended, or only carried.
    #[must_use]
    pub fn severity(self) -> Severity {
        match self {
            Self::NoFinalNewline
            | Self::EmptyLines
            | Self::CarriageReturns
            | Self::ByteOrderMark
            | Self::OrphanResult
            | Self::DuplicateResult
            | Self::UnknownRole
            | Self::UnknownBlock
            | Self::UnknownEntry
            | Self::LoneSurrogate
            | Self::DeepNesting
            | Self::LongLine
            | Self::BadTimestamp
            | Self::BadUsage => Severity::Carried,
            _ => Severity::Repaired,
        }
    }
}

/// What a problem means for who reads the transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Severity {
    /// Something unusual that was read, and is kept, as it is.
    Carried,
    /// Damage that was read around.
    Repaired,
}

/// One problem.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The line, counted from 1, where there is one.
    pub line: Option<u64>,
    /// The entry's id, where it has one.
    pub entry: Option<EntryId>,
    /// What kind.
    pub kind: ProblemKind,
    /// What it means for who reads the transcript.
    pub severity: Severity,
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
    /// Notes a problem; gives its place, unless there are too many.
    pub(crate) fn note(
        &mut self,
        line: u64,
        kind: ProblemKind,
        text: impl Into<String>,
    ) -> Option<usize> {
        self.note_entry(line, None, kind, text)
    }

    /// Notes a problem of one entry.
    pub(crate) fn note_entry(
        &mut self,
        line: u64,
        entry: Option<EntryId>,
        kind: ProblemKind,
        text: impl Into<String>,
    ) -> Option<usize> {
        if self.kept.len() >= MOST_KEPT {
            self.dropped += 1;
            return None;
        }
        // Line 0 stands for the file as a whole.
        let line = (line > 0).then_some(line);
        let text = text.into();
        self.kept.push(Problem { line, entry, kind, severity: kind.severity(), text });
        Some(self.kept.len() - 1)
    }

    /// Says of a problem what is known by now.
    pub(crate) fn reword(&mut self, place: Option<usize>, text: String) {
        if let Some(problem) = place.and_then(|place| self.kept.get_mut(place)) {
            problem.text = text;
        }
    }

    /// Takes back problems that turned out to be one, and as many that were not kept.
    pub(crate) fn withdraw(&mut self, places: Vec<usize>, dropped: usize) {
        let mut places = places.into_iter().peekable();
        let mut at = 0;
        self.kept.retain(|_| {
            at += 1;
            places.next_if_eq(&(at - 1)).is_none()
        });
        self.dropped = self.dropped.saturating_sub(dropped as u64);
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
            let kind = ProblemKind::More;
            self.kept.push(Problem { line, entry: None, kind, severity: kind.severity(), text });
        }
        self.kept.shrink_to_fit();
        (self.kept, self.bad_lines)
    }
}
