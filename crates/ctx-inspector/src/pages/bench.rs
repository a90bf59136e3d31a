//! The bench of compactions as one HTML page.

use std::io::{self, Write};

use ctx_eval::eval::bench::BenchReport;

use super::{Frame, asset};

fn frame() -> Frame {
    Frame {
        name: "eval compact",
        // The same chart and tables as on the page of an evaluation.
        style: asset("eval.css"),
        body: asset("bench.html"),
        script: asset("bench.js"),
    }
}

/// Writes the page that shows `report` to `out`.
///
/// # Errors
///
/// Errors of `out`, and [`io::ErrorKind::InvalidData`] when the report cannot be written as JSON.
pub fn write(report: &BenchReport, out: &mut (impl Write + ?Sized)) -> io::Result<()> {
    frame().write(report, out)
}

#[cfg(test)]
mod tests {
    use ctx_eval::eval::bench::SessionBench;

    use super::*;
    use crate::pages::tests::{NASTY, check_page, data, written};

    fn page(text: &str) -> String {
        let mut session = SessionBench::default();
        session.session.path = text.to_owned();
        let report = BenchReport { sessions: vec![session], ..BenchReport::default() };
        written(|out| write(&report, out))
    }

    #[test]
    fn the_page_is_complete_and_escapes_text_of_transcripts() {
        let nasty = page(NASTY);
        check_page(&frame(), &page("text"), &nasty);
        assert_eq!(data(&nasty)["sessions"][0]["session"]["path"], NASTY);
    }
}
