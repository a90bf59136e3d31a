//! The page, which is part of the program.

use std::sync::LazyLock;

use axum::Router;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use ctx_eval::{frame, html};

/// Nothing but the server's own files is loaded, run or asked, and no other page may frame it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// What this page has in common with those of replays.
static SHARED_STYLE: LazyLock<String> = LazyLock::new(|| [frame::STYLE, html::STYLE].concat());
static SHARED_SCRIPT: LazyLock<String> =
    LazyLock::new(|| [&[frame::SCRIPT][..], &html::SHARED].concat().concat());

/// Names each file once, with what it holds.
macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("assets/", $name)))),*]
    };
}

pub(super) const INDEX: &str = include_str!("assets/index.html");

pub(super) const FILES: &[(&str, &str)] = files![
    "address.js",
    "api.js",
    "compaction.js",
    "dialogs.js",
    "entries.js",
    "entry.js",
    "inspector.css",
    "live.js",
    "main.js",
    "memory.js",
    "request.js",
    "requests.js",
    "session.js",
    "sessions.js",
    "table.js",
    "words.js",
];

pub(super) fn routes() -> Router {
    let shared = [("shared.css", SHARED_STYLE.as_str()), ("shared.js", SHARED_SCRIPT.as_str())];
    let page = Router::new().route("/", get(|| async { file(HTML, INDEX) }));
    FILES.iter().copied().chain(shared).fold(page, |router, (name, text)| {
        let kind = if name.ends_with(".css") { CSS } else { SCRIPT };
        router.route(&format!("/assets/{name}"), get(move || async move { file(kind, text) }))
    })
}

fn file(kind: &'static str, text: &'static str) -> Response {
    const HEADERS: [(HeaderName, &str); 5] = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        // The next version of the program has other files under the same names.
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
