//! The evaluation as one HTML page, in the manner of [`crate::html`]: complete in itself, nothing is
//! fetched, and the data stands in it as JSON.

use std::io::{self, Write};

use super::EvalReport;
use crate::html::{Parts, SHARED_SCRIPT, SHARED_STYLE, fill};

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");

/// In the order of use; the last one starts the page.
const SCRIPTS: [&str; 4] =
    [SHARED_SCRIPT, include_str!("chart.js"), include_str!("tables.js"), include_str!("page.js")];

/// Writes the page that shows `report` to `out`.
///
/// # Errors
///
/// Those of `out`, and [`io::ErrorKind::InvalidData`] when the report cannot be written as JSON.
pub fn write(report: &EvalReport, out: &mut (impl Write + ?Sized)) -> io::Result<()> {
    fill(&Parts { page: PAGE, styles: &[SHARED_STYLE, STYLE], scripts: &SCRIPTS }, report, out)
}

#[cfg(test)]
mod tests {
    use ctx_core::Counter;

    use super::*;
    use crate::SessionReport;
    use crate::eval::SessionEval;

    fn page(text: &str) -> String {
        let session = SessionEval {
            session: SessionReport { path: text.to_owned(), ..SessionReport::default() },
            window: ctx_core::Tokens(32_000),
            model: Some(text.to_owned()),
            rows: Vec::new(),
            once: Vec::new(),
            recorded: Vec::new(),
            sums: Vec::new(),
        };
        let mut out = Vec::new();
        write(&EvalReport::of(vec![session], &Counter::default(), 0.3), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_slot_of_the_page_is_filled() {
        let page = page("text");
        for part in SCRIPTS.iter().chain([&SHARED_STYLE, &STYLE]) {
            assert_eq!(page.matches(part).count(), 1);
        }
        assert!(!page.contains("{{"));
    }

    #[test]
    fn text_of_a_transcript_cannot_leave_the_data() {
        let page = page("</script><script>alert(1)</script> <!-- <![CDATA[ \u{2028}");
        assert_eq!(page.matches("<script").count(), 2);
        assert_eq!(page.matches("</script").count(), 2);
    }

    #[test]
    fn the_page_refers_to_nothing_outside() {
        let page = page("text").to_lowercase();
        for outside in
            ["http:", "https:", "src=", "url(", "@import", "import(", "fetch(", "xmlhttp"]
        {
            assert!(!page.contains(outside), "the page holds {outside}");
        }
        assert!(page.contains("default-src 'none'"));
    }

    #[test]
    fn the_script_never_reads_data_as_markup() {
        for script in SCRIPTS {
            for way in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("] {
                assert!(!script.contains(way), "{way}");
            }
            assert!(!script.contains("</script") && !script.contains("<!--"));
        }
    }
}
