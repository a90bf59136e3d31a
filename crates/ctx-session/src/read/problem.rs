//! Problems in a transcript, and how they were handled.

use std::fmt;

use ctx_core::EntryId;
use serde::Serialize;

/// The maximum number of problems that are stored individually. Further ones are only counted.
const MOST_KEPT: usize = 1_000;

/// The kind of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum ProblemKind {
    /// The header line is missing.
    MissingHeader,
    /// A header line that cannot be read.
    BrokenHeader,
    /// A second header line; it was skipped.
    DuplicateHeader,
    /// A format version unknown to this build; it was read as the newest known one.
    UnknownVersion,
    /// The last line is incomplete; it was skipped.
    TornTail,
    /// No line break after the last line.
    NoFinalNewline,
    /// A line that is not JSON; it was skipped.
    CorruptLine,
    /// A line that contains several objects; every complete one was read.
    GluedLine,
    /// NUL bytes around a line; they were skipped.
    NulBytes,
    /// Bytes that are not UTF-8; they read as U+FFFD.
    InvalidUtf8,
    /// A line that occurs twice in the file; the second was skipped.
    DuplicateLine,
    /// An id that occurs twice in the file with different content; the later entry got a new id.
    DuplicateId,
    /// An entry without an id; it got an ordinal.
    MissingId,
    /// A parent that is not in the file, or not before its child; the previous entry in the file
    /// was used instead.
    BrokenParent,
    /// Empty lines; they were skipped.
    EmptyLines,
    /// Line breaks of two characters.
    CarriageReturns,
    /// A byte order mark at the beginning.
    ByteOrderMark,
    /// A document that ends too early; every complete message was read.
    TornDocument,
    /// A part of a document that cannot be read; the messages before and after it were read.
    DamagedDocument,
    /// Values that are not valid JSON (`NaN`, a raw control character), or a superfluous comma;
    /// read as the closest JSON.
    MendedValue,
    /// Most entries precede their parent; they were sorted by their links.
    Reordered,
    /// A compaction whose first kept entry does not precede it on its branch; nothing before it is
    /// kept.
    BrokenCompaction,
    /// An overlay entry that cannot be read or refers to a missing entry; it was skipped.
    DamagedOverlay,
    /// A tool result without a preceding call.
    OrphanResult,
    /// A second result for the same call, on one branch or next to the first.
    DuplicateResult,
    /// A message with a role that no known agent writes.
    UnknownRole,
    /// A block of a type unknown to this version.
    UnknownBlock,
    /// An entry of a type unknown to this version.
    UnknownEntry,
    /// An escaped half of a surrogate pair; it is read as U+FFFD.
    LoneSurrogate,
    /// Values nested more than 128 deep, which many programs refuse.
    DeepNesting,
    /// A line of more than 16 MiB.
    LongLine,
    /// A time that is neither a number nor a date, or outside of any plausible range.
    BadTimestamp,
    /// Usage that is not a number of tokens.
    BadUsage,
    /// More problems than are listed individually.
    More,
}

impl ProblemKind {
    /// Whether everything was read unchanged despite the problem. Only a full check reports it.
    pub fn is_harmless(self) -> bool {
        matches!(
            self,
            Self::NoFinalNewline | Self::EmptyLines | Self::CarriageReturns | Self::ByteOrderMark
        )
    }

    /// Returns the name used in reports, as in JSON.
    pub fn name(self) -> String {
        let name = format!("{self:?}");
        let (first, rest) = name.split_at(1);
        first.to_ascii_lowercase() + rest
    }

    /// Returns the severity of problems of this kind.
    pub fn severity(self) -> Severity {
        match self {
            _ if self.is_harmless() => Severity::Carried,
            Self::OrphanResult
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

/// The severity of a problem for readers of the transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Severity {
    /// Something unusual that was read and is kept unchanged.
    Carried,
    /// Damage that was bypassed.
    Repaired,
}

/// One problem.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The line, counted from 1, if there is one.
    pub line: Option<u64>,
    /// The entry's id, if it has one.
    pub entry: Option<EntryId>,
    /// The kind.
    pub kind: ProblemKind,
    /// The severity.
    pub severity: Severity,
    /// What was found and how it was handled.
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
    /// Adds a problem. Returns its index, unless there are too many.
    pub(crate) fn note(
        &mut self,
        line: u64,
        kind: ProblemKind,
        text: impl Into<String>,
    ) -> Option<usize> {
        self.note_entry(line, None, kind, text)
    }

    /// Adds a problem of one entry.
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
        // Line 0 means the whole file.
        let line = (line > 0).then_some(line);
        let text = text.into();
        self.kept.push(Problem { line, entry, kind, severity: kind.severity(), text });
        Some(self.kept.len() - 1)
    }

    /// Updates the text of a problem.
    pub(crate) fn reword(&mut self, place: Option<usize>, text: String) {
        if let Some(problem) = place.and_then(|place| self.kept.get_mut(place)) {
            problem.text = text;
        }
    }

    /// Removes the problems at `places`, and `dropped` of those that are only counted.
    pub(crate) fn withdraw(&mut self, places: Vec<usize>, dropped: usize) {
        let mut places = places.into_iter().peekable();
        let mut at = 0;
        self.kept.retain(|_| {
            at += 1;
            places.next_if_eq(&(at - 1)).is_none()
        });
        self.dropped = self.dropped.saturating_sub(dropped as u64);
    }

    /// Adds a problem of the whole file, once per kind.
    pub(crate) fn note_once(&mut self, line: u64, kind: ProblemKind, text: &'static str) {
        if !self.once.contains(&kind) {
            self.once.push(kind);
            self.note(line, kind, text);
        }
    }

    /// Adds a problem of a damaged line.
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
