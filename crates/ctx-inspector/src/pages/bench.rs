//! The bench of compactions as one HTML page.

use std::io::{self, Write};

use ctx_eval::eval::bench::BenchReport;

use super::Frame;

const FRAME: Frame<'_> = Frame { name: "eval compact", style: "", body: "", script: "" };

/// Writes the page that shows `report` to `out`.
///
/// # Errors
///
/// Those of `out`, and [`io::ErrorKind::InvalidData`] when the report cannot be written as JSON.
pub fn write(report: &BenchReport, out: &mut (impl Write + ?Sized)) -> io::Result<()> {
    FRAME.write(report, out)
}
