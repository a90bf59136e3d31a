//! The inspector's page, embedded in the program.

use std::sync::LazyLock;

use axum::Router;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::{asset, parts, slots, style};

/// Allows the page only the server's own files, and forbids other pages to frame it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

const LINKS: &str = r#"<link rel="stylesheet" href="assets/pages.css">
<link rel="stylesheet" href="assets/inspector.css">
"#;

const MARK: &str = r##"<a class="mark" href="#/"><b>ctx</b><span> inspector</span></a>
  <nav aria-label="Views">
    <a href="#/" data-view="sessions">Sessions</a>
    <a href="#/memory" data-view="memory">Memory</a>
  </nav>
  <p id="link" class="link" role="status"></p>"##;

/// The first script defines the functions that the second uses.
const SCRIPTS: &str = r#"<script src="assets/parts.js" defer></script>
<script type="module" src="assets/main.js"></script>"#;

pub(crate) static INDEX: LazyLock<String> = LazyLock::new(|| {
    let filled = |(slot, text): (&str, &'static str)| {
        let given = match slot {
            "title" => "ctx inspector",
            "style" => LINKS,
            "kind" => "inspector",
            "mark" => MARK,
            "banner" => r#"<p id="lost" class="banner" role="alert" hidden></p>"#,
            "script" => SCRIPTS,
            _ => "",
        };
        [given, text].concat()
    };
    slots().map(filled).collect()
});

static PARTS_SCRIPT: LazyLock<String> = LazyLock::new(|| parts().collect());

/// The files of `assets/inspector`.
pub(crate) const FILES: [&str; 12] = [
    "address.js",
    "api.js",
    "compaction.js",
    "entries.js",
    "entry.js",
    "inspector.css",
    "live.js",
    "main.js",
    "memory.js",
    "request.js",
    "session.js",
    "sessions.js",
];

/// Returns each of them with its content.
pub(crate) fn files() -> impl Iterator<Item = (&'static str, &'static str)> {
    FILES.into_iter().map(|name| (name, asset(&format!("inspector/{name}"))))
}

pub(crate) fn routes() -> Router {
    let shared = [("pages.css", style()), ("parts.js", PARTS_SCRIPT.as_str())];
    let page = Router::new().route("/", get(|| async { file(HTML, &INDEX) }));
    files().chain(shared).fold(page, |router, (name, text)| {
        let kind = if name.ends_with(".css") { CSS } else { SCRIPT };
        router.route(&format!("/assets/{name}"), get(move || async move { file(kind, text) }))
    })
}

fn file(kind: &'static str, text: &'static str) -> Response {
    const HEADERS: [(HeaderName, &str); 5] = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        // The next version of the program may change files under the same names.
        (header::CACHE_CONTROL, "no-cache"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ];
    let mut answer =
        ([(header::CONTENT_TYPE, HeaderValue::from_static(kind))], text).into_response();
    for (name, value) in HEADERS {
        answer.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    answer
}
