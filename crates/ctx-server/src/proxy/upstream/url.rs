//! Base URLs and paths.

use std::net::{IpAddr, SocketAddr};

use ctx_core::{Error, ErrorKind, Result};
use ctx_model::Url;
use percent_encoding::percent_decode_str;

/// Parses a base URL.
pub(in crate::proxy) fn base(text: &str) -> Result<Url> {
    let wrong = |what: String| {
        Error::new(ErrorKind::InvalidInput, what)
            .hint("give a base URL such as https://api.openai.com or http://127.0.0.1:11434/v1")
    };
    // The text may contain a password, so the error does not repeat it.
    let url =
        Url::parse(text.trim()).map_err(|error| wrong(format!("invalid upstream URL: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
        let scheme = url.scheme();
        return Err(wrong(format!("a URL must start with http:// or https://, not {scheme}:")));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("a base URL must not contain a query or a fragment".to_owned()));
    }
    Ok(url)
}

/// Joins the paths of a base URL and a request. Each may start with the API's version.
pub(super) fn joined(base: &str, path: &str, version: &str) -> String {
    let base = base.trim_end_matches('/');
    let (before, of_base) = match base.rsplit_once('/') {
        Some((before, last)) if is_version(last) => (before, Some(last)),
        _ => (base, None),
    };
    let rest = path.trim_start_matches('/');
    let (first, tail) = rest.split_once('/').unwrap_or((rest, ""));
    if is_version(first) {
        // The client's version takes precedence.
        return format!("{before}/{first}/{tail}");
    }
    match of_base {
        // A server's native API is beside its OpenAI-compatible one and has no version, nor has
        // Bedrock's.
        Some(_) if ["api", "props", "model"].contains(&first) => {
            format!("{}/{rest}", before.strip_suffix("/api").unwrap_or(before))
        }
        Some(version) => format!("{before}/{version}/{rest}"),
        // A base URL with a path already points to the API.
        None if before.is_empty() && is_api(first) => format!("/{version}/{rest}"),
        None => format!("{before}/{rest}"),
    }
}

/// Whether a path contains `..`, in any encoding that a server may accept.
pub(in crate::proxy) fn has_parent_segment(path_and_query: &str) -> bool {
    /// Maximum number of decoding rounds; a path that still changes is refused.
    const DECODED: usize = 4;
    let mut path = path_and_query.split(['?', '#']).next().unwrap_or_default().to_owned();
    for _ in 0..DECODED {
        if path.split(['/', '\\']).any(|segment| segment.split(';').next() == Some("..")) {
            return true;
        }
        let decoded = percent_decode_str(&path).decode_utf8_lossy().into_owned();
        if decoded == path {
            return false;
        }
        path = decoded;
    }
    true
}

/// Whether a segment is an API version: `v1`, `v1beta`, `v2alpha1`.
fn is_version(segment: &str) -> bool {
    let rest = segment.strip_prefix('v').unwrap_or_default();
    let stem = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    let word = stem.trim_end_matches(|c: char| c.is_ascii_digit());
    rest.len() > stem.len() && ["", "beta", "alpha"].contains(&word)
}

/// Whether a path without its version starts like an API path.
fn is_api(first: &str) -> bool {
    let word = first.split(':').next().unwrap_or(first);
    [
        "chat",
        "completions",
        "responses",
        "messages",
        "models",
        "embeddings",
        "files",
        "batches",
        "audio",
        "images",
        "moderations",
    ]
    .contains(&word)
}

/// Whether a URL points to the listening address of this machine.
pub(super) fn is_at(url: &Url, address: SocketAddr) -> bool {
    if url.port_or_known_default() != Some(address.port()) {
        return false;
    }
    let host = url.host_str().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
    let own = address.ip();
    if host == "localhost" || host.ends_with(".localhost") {
        return own.is_loopback() || own.is_unspecified();
    }
    host.parse::<IpAddr>().is_ok_and(|ip| {
        ip == own || (own.is_unspecified() && ip.is_loopback()) || ip.is_unspecified()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn api_versions_are_neither_doubled_nor_lost() {
        for (base, path, expected) in [
            ("/", "/v1/chat/completions", "/v1/chat/completions"),
            ("/v1", "/v1/chat/completions", "/v1/chat/completions"),
            ("/v1/", "/chat/completions", "/v1/chat/completions"),
            ("/", "/chat/completions", "/v1/chat/completions"),
            ("/api/v1", "/v1/models", "/api/v1/models"),
            ("/api", "/v1/models", "/api/v1/models"),
            (
                "/openai/deployments/d",
                "/chat/completions",
                "/openai/deployments/d/chat/completions",
            ),
            ("/v1", "/v1beta/models/m:generateContent", "/v1beta/models/m:generateContent"),
            ("/", "/model/m/invoke", "/model/m/invoke"),
            ("/v1", "/model/m/invoke", "/model/m/invoke"),
            ("/", "/api/tags", "/api/tags"),
            ("/v1", "/api/tags", "/api/tags"),
            ("/ollama/v1", "/api/chat", "/ollama/api/chat"),
            ("/api/v1", "/api/v1/models", "/api/v1/models"),
            ("/v1", "/v1", "/v1/"),
            ("/", "/", "/"),
        ] {
            assert_eq!(joined(base, path, "v1"), expected, "{base} {path}");
        }
        assert_eq!(
            joined("", "/models/m:generateContent", "v1beta"),
            "/v1beta/models/m:generateContent"
        );
    }

    #[test]
    fn parent_segments_are_detected_in_every_encoding() {
        for path in [
            "/v1/../admin",
            "/v1/%2e%2E/admin",
            "/v1/.%2e",
            "/..",
            "/v1\\..\\x",
            "/v1/..%2f..%2fx",
            "/v1/%2e%2e%2Fx",
            "/v1/%252e%252e/x",
            "/v1/..%252fx",
            "/v1/..%255cx",
            "/v1/%25252e%25252e/x",
            "/v1/..;a=b/x",
            "/v1/%252525252e%252525252e/x",
        ] {
            assert!(has_parent_segment(path), "{path}");
        }
        let models = ["/v1/models/a..b", "/v1/models/meta%2Fllama-3%3A8b", "/v1/models/100%25"];
        for path in models.into_iter().chain(["/v1/...", "/v1/models?q=../x", "/v1/.", "/"]) {
            assert!(!has_parent_segment(path), "{path}");
        }
    }
}
