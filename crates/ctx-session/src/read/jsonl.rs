//! The shared part of all line-based formats: iterating over the lines, and handling bad ones.

use std::borrow::Cow;
use std::sync::Arc;

use ctx_core::Result;
use ctx_dialect::json::{Object, relaxed};

use crate::entry::byte_range;
use crate::read::salvage::salvage;
use crate::read::{Builder, ProblemKind};
use crate::source::{Source, SourceLine, SourceLines, SourcePosition};

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// A parsed object, its text, and its position.
#[derive(Clone, Copy)]
pub(crate) struct Record<'a> {
    pub(crate) object: &'a Object<'a>,
    pub(crate) text: &'a str,
    pub(crate) place: SourcePosition,
}

/// A line-based format.
pub(crate) trait LineFormat {
    /// Reads one object.
    fn object(&mut self, out: &mut Builder, record: Record<'_>) -> Result<()>;

    /// Called at the end of the file.
    fn end(&mut self, _out: &mut Builder) {}

    /// Called for an unreadable line.
    fn bad_line(&mut self, _line: u64) {}
}

pub(crate) fn read(source: Source, mut format: impl LineFormat) -> Result<Builder> {
    let source = Arc::new(source);
    let mut out = Builder::new(&source);
    let mut lines = SourceLines::new(&source);
    while let Some(line) = lines.next()? {
        one(&mut out, &mut format, line)?;
    }
    format.end(&mut out);
    Ok(out)
}

fn one(out: &mut Builder, format: &mut impl LineFormat, line: SourceLine<'_>) -> Result<()> {
    let SourceLine { mut bytes, mut offset, number, terminated } = line;
    if number == 1 && bytes.starts_with(BYTE_ORDER_MARK) {
        out.problems.note_once(1, ProblemKind::ByteOrderMark, "a byte order mark: skipped");
        bytes = &bytes[BYTE_ORDER_MARK.len()..];
        offset += BYTE_ORDER_MARK.len() as u64;
    }
    if let [rest @ .., b'\r'] = bytes {
        let text = "lines end in CR LF: read as LF";
        out.problems.note_once(number, ProblemKind::CarriageReturns, text);
        bytes = rest;
    }
    if bytes.iter().all(u8::is_ascii_whitespace) {
        out.problems.note_once(number, ProblemKind::EmptyLines, "empty lines: skipped");
        return Ok(());
    }
    let Some(place) = SourcePosition::of(bytes, offset, number) else {
        out.problems.bad_line(number, ProblemKind::CorruptLine, "a line of over 4 GB: skipped");
        return Ok(());
    };
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(bytes),
    };
    match Object::parse(&text) {
        Ok(object) => {
            if matches!(text, Cow::Owned(_)) {
                let note = "invalid UTF-8: read as U+FFFD";
                out.problems.bad_line(number, ProblemKind::InvalidUtf8, note);
            }
            if !terminated {
                let note = "no line break after the last line";
                out.problems.note_once(number, ProblemKind::NoFinalNewline, note);
            }
            format.object(out, Record { object: &object, text: &text, place })
        }
        Err(_) => broken(out, format, &text, place, terminated),
    }
}

/// Handles a line that is not one object.
fn broken(
    out: &mut Builder,
    format: &mut impl LineFormat,
    text: &str,
    place: SourcePosition,
    terminated: bool,
) -> Result<()> {
    if let Some(mended) = text.starts_with('{').then(|| relaxed(text)).flatten()
        && let Ok(object) = Object::parse(&mended)
    {
        let note = "values that are not valid JSON, such as NaN: read as null, or escaped";
        out.problems.bad_line(place.line, ProblemKind::MendedValue, note);
        let place = SourcePosition { mended: true, ..place };
        return format.object(out, Record { object: &object, text: &mended, place });
    }
    let found = salvage(text);
    // In text whose encoding was repaired, an object's position differs from that in the file.
    let placed = text.len() == place.span.len as usize && !text.contains('\u{FFFD}');
    if found.objects.is_empty() || !placed {
        out.add_unreadable(place.span);
        out.bridge_unreadable(text);
        format.bad_line(place.line);
        let (kind, what) = match (terminated, found.nul) {
            (false, _) => (ProblemKind::TornTail, "the last line is incomplete: skipped"),
            (true, true) => (ProblemKind::NulBytes, "NUL bytes, no readable entry: skipped"),
            (true, false) => (ProblemKind::CorruptLine, "not a JSON object: skipped"),
        };
        out.problems.bad_line(place.line, kind, what);
        return Ok(());
    }
    let count = found.objects.len();
    let kind = if found.nul { ProblemKind::NulBytes } else { ProblemKind::GluedLine };
    let rest = if found.debris { ", the rest skipped" } else { "" };
    let plural = if count == 1 { "object" } else { "objects" };
    let note = format!("damaged: {count} complete {plural} read{rest}");
    out.problems.bad_line(place.line, kind, note);
    if found.debris {
        out.add_unreadable(place.span);
        out.bridge_unreadable(text);
        format.bad_line(place.line);
    }
    for piece in found.objects {
        let Ok(object) = Object::parse(piece) else { continue };
        let offset = place.span.offset + u64::from(byte_range(text, piece).0);
        let Some(place) = SourcePosition::of(piece.as_bytes(), offset, place.line) else {
            continue;
        };
        format.object(out, Record { object: &object, text: piece, place })?;
    }
    Ok(())
}
