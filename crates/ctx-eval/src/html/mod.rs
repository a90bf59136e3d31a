//! The replay report as one HTML page.
//!
//! The page is complete in itself: style, script and data are inline, nothing is fetched, and a
//! content security policy makes the browser refuse to try. It opens from a disk, from an attachment
//! or from a build artefact alike. The data stands in it as JSON, so the page is also the report.

use std::io::{self, BufWriter, Write};

use serde::Serialize;

use crate::{ReplayReport, RequestDetail};

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");

/// In the order of use: each file speaks only of those before it, and the last one starts the page.
const SCRIPTS: [&str; 6] = [
    include_str!("model.js"),
    include_str!("chart.js"),
    include_str!("manifest.js"),
    include_str!("compactions.js"),
    include_str!("rows.js"),
    include_str!("page.js"),
];

/// Writes the page that shows `report` to `out`.
///
/// Without [details](ReplayReport::details) the chart and the rows are there, but an opened row
/// tells sizes only. The report is streamed into the page: no second copy of it is made.
///
/// # Errors
///
/// Those of `out`, and [`io::ErrorKind::InvalidData`] when the report cannot be written as JSON.
pub fn write(report: &ReplayReport, out: &mut (impl Write + ?Sized)) -> io::Result<()> {
    let data = PageData { report, details: &report.details };
    fill(&Parts { page: PAGE, styles: &[STYLE], scripts: &SCRIPTS }, &data, out)
}

/// What a page is put together from.
pub(crate) struct Parts<'a> {
    /// The markup, with the slots `{{style}}`, `{{report}}` and `{{script}}`.
    pub(crate) page: &'a str,
    /// Style sheets, in order.
    pub(crate) styles: &'a [&'a str],
    /// Scripts, in order of use.
    pub(crate) scripts: &'a [&'a str],
}

/// What pages share: the house style, and the script that reads the data and writes words and
/// numbers.
pub(crate) const SHARED_STYLE: &str = STYLE;
/// See [`SHARED_STYLE`].
pub(crate) const SHARED_SCRIPT: &str = SCRIPTS[0];

/// Writes a page with its data in it.
pub(crate) fn fill(
    parts: &Parts<'_>,
    data: &impl Serialize,
    out: &mut (impl Write + ?Sized),
) -> io::Result<()> {
    for part in parts.page.split("{{") {
        let Some((slot, text)) = part.split_once("}}") else {
            out.write_all(part.as_bytes())?;
            continue;
        };
        let pieces = match slot {
            "style" => parts.styles,
            "script" => parts.scripts,
            _ => {
                write_data(data, out)?;
                &[]
            }
        };
        pieces.iter().try_for_each(|piece| out.write_all(piece.as_bytes()))?;
        out.write_all(text.as_bytes())?;
    }
    out.flush()
}

/// The report as on the command line, and the details that are left out there.
#[derive(Serialize)]
struct PageData<'a> {
    #[serde(flatten)]
    report: &'a ReplayReport,
    details: &'a [RequestDetail],
}

fn write_data(data: &impl Serialize, out: &mut (impl Write + ?Sized)) -> io::Result<()> {
    let mut json = BufWriter::new(InScript { out });
    serde_json::to_writer(&mut json, data)?;
    json.flush()
}

/// JSON on its way into a `<script>` element. A transcript may hold `</script>` or `<!--`, which
/// would end the element or hide its end. In JSON a `<` can stand in strings only, and there an
/// escape means the same.
struct InScript<'a, W: ?Sized> {
    out: &'a mut W,
}

impl<W: Write + ?Sized> Write for InScript<'_, W> {
    fn write(&mut self, json: &[u8]) -> io::Result<usize> {
        for (nth, piece) in json.split(|&byte| byte == b'<').enumerate() {
            if nth > 0 {
                self.out.write_all(b"\\u003c")?;
            }
            self.out.write_all(piece)?;
        }
        Ok(json.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use ctx_core::{Action, Component, Edit, Profile, Timestamp, Tokens};
    use serde_json::Value;

    use super::*;
    use crate::{RequestReport, SessionReport, Totals};

    const DATA_START: &str = r#"<script type="application/json" id="report">"#;

    /// A report of `count` requests, with `text` wherever a transcript's own words may stand.
    fn report(text: &str, count: usize) -> ReplayReport {
        let request = RequestReport {
            entry_id: text.into(),
            timestamp: Some(Timestamp(1_700_000_000_000)),
            raw_tokens: Tokens(90_000),
            sent_tokens: Tokens(20_000),
            cached_tokens: Tokens(15_000),
            fits: true,
            cost_usd: None,
            actions: BTreeMap::from([(text.to_owned(), 1)]),
        };
        let edit = Edit {
            entry: text.into(),
            layer: text.to_owned().into(),
            action: Action::Replace,
            before: Tokens(70_100),
            after: Tokens(100),
            reason: text.to_owned().into(),
        };
        let component = Component { name: "history", tokens: Tokens(20_000) };
        let detail = RequestDetail { edits: vec![edit], components: vec![component] };
        ReplayReport {
            session: SessionReport { path: text.to_owned(), ..SessionReport::default() },
            window: Tokens(32_000),
            reserve: Tokens(8_000),
            engine: "legacy".to_owned(),
            acted: BTreeSet::new(),
            layers: BTreeMap::new(),
            profile: Profile::Openclaw,
            counter: "chars4".to_owned(),
            model: Some(text.to_owned()),
            compactions: Vec::new(),
            requests: vec![request; count],
            details: vec![detail; count],
            totals: Totals::default(),
        }
    }

    fn page(report: &ReplayReport) -> String {
        let mut out = Vec::new();
        write(report, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn data_text(page: &str) -> &str {
        let (_, rest) = page.split_once(DATA_START).unwrap();
        rest.split_once("</script>").unwrap().0
    }

    fn data(page: &str) -> Value {
        serde_json::from_str(data_text(page)).unwrap()
    }

    #[test]
    fn the_page_holds_the_report_and_its_details() {
        let report = report("é😀 {{style}}", 2);
        let page = page(&report);
        let mut data = data(&page);
        let details = data.as_object_mut().unwrap().remove("details").unwrap();
        assert_eq!(data, serde_json::to_value(&report).unwrap());
        assert_eq!(details, serde_json::to_value(&report.details).unwrap());
    }

    #[test]
    fn every_slot_of_the_page_is_filled() {
        let page = page(&report("text", 1));
        for part in SCRIPTS.iter().chain([&STYLE]) {
            assert_eq!(page.matches(part).count(), 1);
        }
        assert!(!page.contains("{{"));
    }

    #[test]
    fn text_of_a_transcript_cannot_leave_the_data() {
        let nasty = "</script><script>alert(1)</script> <!-- <![CDATA[ \u{2028}";
        let page = page(&report(nasty, 1));
        assert!(!data_text(&page).contains('<'));
        assert_eq!(data(&page)["details"][0]["edits"][0]["reason"], nasty);
        assert_eq!(page.matches("<script").count(), 2);
        assert_eq!(page.matches("</script").count(), 2);
    }

    #[test]
    fn a_large_report_is_whole_whatever_the_pieces_it_comes_in() {
        let report = report("<a<<b<", 5_000);
        let data = data(&page(&report));
        assert_eq!(data["details"], serde_json::to_value(&report.details).unwrap());
    }

    #[test]
    fn the_page_refers_to_nothing_outside() {
        let page = page(&report("text", 1)).to_lowercase();
        for outside in
            ["http:", "https:", "src=", "url(", "@import", "import(", "fetch(", "xmlhttp"]
        {
            assert!(!page.contains(outside), "the page holds {outside}");
        }
        assert_eq!(page.matches("href=").count(), page.matches(r#"href="data:,""#).count());
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
