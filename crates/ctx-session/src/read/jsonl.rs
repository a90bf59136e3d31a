//! What all formats of lines have in common: the walk over the lines, and what to do with bad ones.

use std::borrow::Cow;
use std::sync::Arc;

use ctx_core::Result;
use ctx_dialect::json::{Object, relaxed};

use crate::builder::{Builder, Place};
use crate::lines::{Line, Lines};
use crate::load::place_in;
use crate::problem::ProblemKind;
use crate::salvage::salvage;
use crate::source::{Source, Span, fingerprint};

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// An object that was read, the text it was read from, and where that stands.
#[derive(Clone, Copy)]
pub(super) struct Record<'a> {
    pub(super) object: &'a Object<'a>,
    pub(super) text: &'a str,
    pub(super) place: Place,
}

/// A format that is written line by line.
pub(super) trait LineFormat {
    /// Takes in one object.
    fn object(&mut self, out: &mut Builder, record: Record<'_>) -> Result<()>;

    /// The file is over.
    fn end(&mut self, out: &mut Builder);

    /// A line could not be read.
    fn bad_line(&mut self, _line: u64) {}
}

pub(super) fn read(source: &Arc<Source>, mut format: impl LineFormat) -> Result<Builder> {
    let mut out = Builder::new(source);
    let mut lines = Lines::new(source);
    while let Some(line) = lines.next()? {
        one(&mut out, &mut format, line)?;
    }
    format.end(&mut out);
    Ok(out)
}

fn one(out: &mut Builder, format: &mut impl LineFormat, line: Line<'_>) -> Result<()> {
    let Line { mut bytes, mut offset, number, terminated } = line;
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
    let Ok(len) = u32::try_from(bytes.len()) else {
        out.problems.bad_line(number, ProblemKind::CorruptLine, "a line of over 4 GB: left out");
        return Ok(());
    };
    let span = Span { offset, len };
    let place = Place { span, fingerprint: fingerprint(bytes), line: number, mended: false };
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(bytes),
    };
    match Object::parse(&text) {
        Ok(object) => {
            if matches!(text, Cow::Owned(_)) {
                let note = "bytes that are not UTF-8: they read as U+FFFD";
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

/// A line that is not one object.
fn broken(
    out: &mut Builder,
    format: &mut impl LineFormat,
    text: &str,
    place: Place,
    terminated: bool,
) -> Result<()> {
    if let Some(mended) = text.starts_with('{').then(|| relaxed(text)).flatten()
        && let Ok(object) = Object::parse(&mended)
    {
        let note = "values that JSON does not know, such as NaN: read as null, or escaped";
        out.problems.bad_line(place.line, ProblemKind::MendedValue, note);
        let place = Place { mended: true, ..place };
        return format.object(out, Record { object: &object, text: &mended, place });
    }
    let found = salvage(text);
    // In text mended for its encoding an object's place is not its place in the file.
    let placed = text.len() == place.span.len as usize && !text.contains('\u{FFFD}');
    if found.objects.is_empty() || !placed {
        out.lose(place.span);
        out.bridge_lost(text);
        format.bad_line(place.line);
        let (kind, what) = match (terminated, found.nul) {
            (false, _) => (ProblemKind::TornTail, "the last line is incomplete: left out"),
            (true, true) => (ProblemKind::NulBytes, "NUL bytes, no readable entry: left out"),
            (true, false) => (ProblemKind::CorruptLine, "not a JSON object: left out"),
        };
        out.problems.bad_line(place.line, kind, what);
        return Ok(());
    }
    let count = found.objects.len();
    let kind = if found.nul { ProblemKind::NulBytes } else { ProblemKind::GluedLine };
    let rest = if found.debris { ", the rest left out" } else { "" };
    let plural = if count == 1 { "object" } else { "objects" };
    let note = format!("damaged: {count} whole {plural} taken{rest}");
    out.problems.bad_line(place.line, kind, note);
    if found.debris {
        out.lose(place.span);
        out.bridge_lost(text);
        format.bad_line(place.line);
    }
    for piece in found.objects {
        let Ok(object) = Object::parse(piece) else { continue };
        let (from, to) = place_in(text, piece);
        let span = Span { offset: place.span.offset + u64::from(from), len: to - from };
        let place = Place { span, fingerprint: fingerprint(piece.as_bytes()), ..place };
        format.object(out, Record { object: &object, text: piece, place })?;
    }
    Ok(())
}
