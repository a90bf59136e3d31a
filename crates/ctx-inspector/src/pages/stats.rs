//! What was saved as one HTML page.

use std::io::{self, Write};

use ctx_trace::stats::StatsReport;

use super::{Frame, asset};

fn frame() -> Frame {
    Frame {
        name: "stats",
        // The same tables as on the page of an evaluation.
        style: asset("eval.css"),
        body: asset("stats.html"),
        script: asset("stats.js"),
    }
}

/// Writes the page that shows `report` to `out`.
///
/// # Errors
///
/// Errors of `out`, and [`io::ErrorKind::InvalidData`] when the report cannot be written as JSON.
pub fn write(report: &StatsReport, out: &mut (impl Write + ?Sized)) -> io::Result<()> {
    frame().write(report, out)
}

#[cfg(test)]
mod tests {
    use ctx_trace::stats::{Figures, Origin, StatsRow};

    use super::*;
    use crate::pages::tests::{NASTY, check_page, data, written};

    fn page(key: &str) -> String {
        let key = Some(key.to_owned());
        let row = StatsRow { origin: Origin::Measured, key, figures: Figures::default() };
        let report = StatsReport { rows: vec![row], ..StatsReport::default() };
        written(|out| write(&report, out))
    }

    #[test]
    fn the_page_is_complete_and_escapes_names() {
        let nasty = page(NASTY);
        check_page(&frame(), &page("text"), &nasty);
        assert_eq!(data(&nasty)["rows"][0]["key"], NASTY);
    }
}
