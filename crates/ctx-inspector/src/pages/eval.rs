//! An evaluation as one HTML page.

use std::io::{self, Write};

use ctx_eval::eval::EvalReport;

use super::{Frame, asset};

fn frame() -> Frame {
    Frame {
        name: "eval",
        style: asset("eval.css"),
        body: asset("eval.html"),
        script: asset("eval.js"),
    }
}

/// Writes the page that shows `report` to `out`.
///
/// # Errors
///
/// Errors of `out`, and [`io::ErrorKind::InvalidData`] when the report cannot be written as JSON.
pub fn write(report: &EvalReport, out: &mut (impl Write + ?Sized)) -> io::Result<()> {
    frame().write(report, out)
}

#[cfg(test)]
mod tests {
    use ctx_core::Counter;
    use ctx_eval::eval::SessionEval;

    use super::*;
    use crate::pages::tests::{NASTY, check_page, data, written};

    fn page(text: &str) -> String {
        let mut session = SessionEval::default();
        session.session.path = text.to_owned();
        session.model = Some(text.to_owned());
        let report = EvalReport::of(vec![session], &Counter::default(), 0.3);
        written(|out| write(&report, out))
    }

    #[test]
    fn the_page_is_complete_and_escapes_text_of_transcripts() {
        let nasty = page(NASTY);
        check_page(&frame(), &page("text"), &nasty);
        assert_eq!(data(&nasty)["sessions"][0]["model"], NASTY);
    }
}
