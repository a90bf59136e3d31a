//! A replay as one HTML page.

use std::io::{self, Write};

use ctx_eval::{ReplayReport, RequestDetail};
use serde::Serialize;

use super::{Frame, asset};

fn frame() -> Frame {
    Frame { name: "replay", style: "", body: "", script: asset("replay.js") }
}

/// Writes the page that shows `report` to `out`.
///
/// Without [details](ReplayReport::details) the page has the chart and the rows, but an opened
/// request shows only sizes. The report is streamed into the page, without a second copy.
///
/// # Errors
///
/// Errors of `out`, and [`io::ErrorKind::InvalidData`] when the report cannot be written as JSON.
pub fn write(report: &ReplayReport, out: &mut (impl Write + ?Sized)) -> io::Result<()> {
    let data = PageData { report, details: &report.details };
    frame().write(&data, out)
}

/// The report as `ctx replay --json` writes it, with the details.
#[derive(Serialize)]
struct PageData<'a> {
    #[serde(flatten)]
    report: &'a ReplayReport,
    details: &'a [RequestDetail],
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use ctx_config::Profile;
    use ctx_core::{Action, Component, Edit, Timestamp, Tokens};

    use ctx_eval::{ReplayTotals, RequestReport, SessionReport};

    use super::*;
    use crate::pages::tests::{NASTY, check_page, data, written};

    /// Returns a report of `count` requests, with `text` wherever a transcript's text may appear.
    fn report(text: &str, count: usize) -> ReplayReport {
        let request = RequestReport {
            entry_id: text.into(),
            timestamp: Some(Timestamp(1_700_000_000_000)),
            recorded_tokens: None,
            raw_tokens: Tokens(90_000),
            sent_tokens: Tokens(20_000),
            cached_tokens: Tokens(15_000),
            unchanged_prefix: Tokens(15_000),
            fits: true,
            cost_usd: None,
            cost_recorded_usd: None,
            cost_without_usd: None,
            recalled_tokens: Tokens(300),
            trimmed_messages: 1,
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
        let component = Component { name: "history".into(), tokens: Tokens(20_000) };
        let (edits, components) = (vec![edit], vec![component]);
        let detail = RequestDetail { edits, components, forms: Vec::new() };
        ReplayReport {
            session: SessionReport { path: text.to_owned(), ..SessionReport::default() },
            window: Tokens(32_000),
            reserve: Tokens(8_000),
            engine: "legacy".to_owned(),
            engine_answered: count,
            engine_failures: 0,
            stand_in: None,
            stand_in_reason: None,
            warnings: Vec::new(),
            acted: BTreeSet::new(),
            layers: BTreeMap::new(),
            profile: Profile::default(),
            counter: "chars4".to_owned(),
            model: Some(text.to_owned()),
            recorded: None,
            recorded_compactions: Vec::new(),
            calibration: None,
            compactions: Vec::new(),
            requests: vec![request; count],
            details: vec![detail; count],
            totals: ReplayTotals::default(),
        }
    }

    fn page(report: &ReplayReport) -> String {
        written(|out| write(report, out))
    }

    #[test]
    fn the_page_contains_the_report_and_its_details() {
        let report = report("é😀 {{style}}", 2);
        let page = page(&report);
        let mut data = data(&page);
        let details = data.as_object_mut().unwrap().remove("details").unwrap();
        assert_eq!(data, serde_json::to_value(&report).unwrap());
        assert_eq!(details, serde_json::to_value(&report.details).unwrap());
    }

    #[test]
    fn the_page_is_complete_and_escapes_text_of_transcripts() {
        let nasty = page(&report(NASTY, 1));
        check_page(&frame(), &page(&report("text", 1)), &nasty);
        assert_eq!(data(&nasty)["details"][0]["edits"][0]["reason"], NASTY);
    }

    #[test]
    fn a_large_report_is_written_completely() {
        let report = report("<a<<b<", 5_000);
        let data = data(&page(&report));
        assert_eq!(data["details"], serde_json::to_value(&report.details).unwrap());
    }
}
