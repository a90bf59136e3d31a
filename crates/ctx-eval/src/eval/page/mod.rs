//! The evaluation as one HTML page, in the [frame](crate::frame) of all pages.

use std::io::{self, Write};

use super::EvalReport;
use crate::frame::Frame;

const FRAME: Frame<'_> = Frame {
    title: "ctx eval",
    style: include_str!("page.css"),
    body: include_str!("page.html"),
    // Each file speaks only of those before it.
    scripts: &[include_str!("chart.js"), include_str!("tables.js"), include_str!("page.js")],
};

/// Writes the page that shows `report` to `out`.
///
/// # Errors
///
/// Those of `out`, and [`io::ErrorKind::InvalidData`] when the report cannot be written as JSON.
pub fn write(report: &EvalReport, out: &mut (impl Write + ?Sized)) -> io::Result<()> {
    FRAME.write(report, out)
}

#[cfg(test)]
mod tests {
    use ctx_core::Counter;

    use super::*;
    use crate::SessionReport;
    use crate::eval::SessionEval;
    use crate::frame::tests::{NASTY, check_page, data, written};

    fn page(text: &str) -> String {
        let session = SessionEval {
            session: SessionReport { path: text.to_owned(), ..SessionReport::default() },
            window: ctx_core::Tokens(32_000),
            model: Some(text.to_owned()),
            rows: Vec::new(),
            once: Vec::new(),
            recorded: Vec::new(),
            calibration: None,
            sums: Vec::new(),
        };
        let report = EvalReport::of(vec![session], &Counter::default(), 0.3);
        written(|out| write(&report, out))
    }

    #[test]
    fn the_page_is_whole_and_text_of_a_transcript_cannot_leave_the_data() {
        let nasty = page(NASTY);
        check_page(&FRAME, &page("text"), &nasty);
        assert_eq!(data(&nasty)["sessions"][0]["model"], NASTY);
    }
}
