//! The evaluation as one HTML page, in the manner of [`crate::html`]: complete in itself, nothing is
//! fetched, and the data stands in it as JSON.

use std::io::{self, Write};

use super::EvalReport;
use crate::html::{Parts, SHARED_SCRIPT, SHARED_STYLE, fill};

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");

/// In the order of use; the last one starts the page.
const SCRIPTS: [&str; 3] = [SHARED_SCRIPT, include_str!("chart.js"), include_str!("page.js")];

/// Writes the page that shows `report` to `out`.
///
/// # Errors
///
/// Those of `out`, and [`io::ErrorKind::InvalidData`] when the report cannot be written as JSON.
pub fn write(report: &EvalReport, out: &mut (impl Write + ?Sized)) -> io::Result<()> {
    fill(&Parts { page: PAGE, styles: &[SHARED_STYLE, STYLE], scripts: &SCRIPTS }, report, out)
}
