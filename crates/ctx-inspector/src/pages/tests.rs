//! Checks for every page, called by each page with its parts.

use serde_json::{Value, json};

use super::*;

const DATA_START: &str = r#"<script type="application/json" id="report">"#;

/// Text that ends a script element, or hides its end, unless it is escaped.
pub(crate) const NASTY: &str = "</script><script>alert(1)</script> <!-- <![CDATA[ \u{2028}";

/// Returns the page as text.
pub(crate) fn written(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> String {
    let mut out = Vec::new();
    write(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Returns the data in a page.
pub(crate) fn data(page: &str) -> Value {
    let (_, rest) = page.split_once(DATA_START).unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

/// Checks that the page contains every part once and no unfilled slot, fetches nothing, and parses
/// no data as markup. `nasty` is the page of data that contains [`NASTY`].
#[track_caller]
pub(crate) fn check_page(frame: &Frame, plain: &str, nasty: &str) {
    let all = [style(), frame.style, frame.body, frame.script].into_iter().chain(parts());
    for part in all.filter(|part| !part.is_empty()) {
        assert_eq!(plain.matches(part).count(), 1, "{}", part.lines().next().unwrap_or_default());
    }
    assert!(plain.contains(&format!("<title>ctx {}</title>", frame.name)));
    assert!(!plain.contains("{{"));
    for page in [plain, nasty] {
        let (_, text) = page.split_once(DATA_START).unwrap();
        assert!(!text.split_once("</script>").unwrap().0.contains('<'));
        assert_eq!(page.matches("<script").count(), 2);
        assert_eq!(page.matches("</script").count(), 2);
        data(page);
    }
    let low = plain.to_lowercase();
    for outside in ["http:", "https:", "src=", "url(", "@import", "import(", "fetch(", "xmlhttp"] {
        assert!(!low.contains(outside), "the page contains {outside}");
    }
    assert_eq!(low.matches("href=").count(), low.matches(r#"href="data:,""#).count());
    assert!(low.contains("default-src 'none'"));
    for script in parts().chain([frame.script]) {
        for way in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("] {
            assert!(!script.contains(way), "{way}");
        }
        assert!(!script.contains("</script") && !script.contains("<!--"));
    }
}

#[test]
fn a_page_has_frame_parts_and_data_and_loads_nothing() {
    let frame = Frame {
        name: "test",
        style: "p { margin: 0; }\n",
        body: "<p id=\"p\"></p>\n",
        script: "document.title;\n",
    };
    let page = |text: &str| written(|out| frame.write(&json!({ "text": text }), out));
    check_page(&frame, &page("text"), &page(NASTY));
    assert_eq!(data(&page(NASTY))["text"], NASTY);
    assert_eq!(data(&page("{{body}}"))["text"], "{{body}}");
}

#[test]
fn data_written_in_many_pieces_is_complete() {
    let frame = Frame { name: "t", style: "", body: "", script: "" };
    let long = vec!["<a<<b<"; 5_000];
    assert_eq!(data(&written(|out| frame.write(&long, out))), json!(long));
}
