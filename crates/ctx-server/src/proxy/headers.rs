//! Filters forwarded headers.

use axum::http::header::{
    ACCEPT_ENCODING, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, EXPECT, HOST, HeaderName,
    PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use axum::http::{HeaderMap, HeaderValue};

use super::token_owner::{Owner, owner};

/// Hop-by-hop headers, which are not forwarded.
const HOP_BY_HOP: [HeaderName; 7] =
    [CONNECTION, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE];

/// Request headers that the proxy sets itself. It requests answers without compression, because it
/// reads them as they pass.
const SET_BY_PROXY: [HeaderName; 4] = [HOST, CONTENT_LENGTH, ACCEPT_ENCODING, EXPECT];

/// Returns the headers of a request for the provider. If the body was decoded, its encoding is
/// removed.
pub(super) fn to_upstream(mut headers: HeaderMap, is_decoded: bool) -> HeaderMap {
    drop_hop_by_hop(&mut headers);
    for name in SET_BY_PROXY {
        headers.remove(name);
    }
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    if is_decoded {
        headers.remove(CONTENT_ENCODING);
    }
    for (name, value) in &mut headers {
        if is_secret(name) {
            value.set_sensitive(true);
        }
    }
    headers
}

/// Returns the headers of an answer for the client.
pub(super) fn to_client(mut headers: HeaderMap) -> HeaderMap {
    drop_hop_by_hop(&mut headers);
    headers
}

fn drop_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named.iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
    headers.remove("keep-alive");
    headers.remove("proxy-connection");
}

/// Whether a request requests an upgrade to WebSocket.
pub(super) fn is_websocket(headers: &HeaderMap) -> bool {
    let is_it = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"websocket");
    headers.get(UPGRADE).is_some_and(is_it)
}

/// Whether a header contains credentials.
pub(super) fn is_secret(name: &HeaderName) -> bool {
    ["authorization", "x-api-key", "x-goog-api-key", "api-key", "cookie"].contains(&name.as_str())
}

/// Returns the credentials of a request, concatenated. `session` is the client's session name.
pub(super) fn secrets(headers: &HeaderMap, query: Option<&str>, session: Option<&[u8]>) -> Vec<u8> {
    let mut all = Vec::new();
    for name in ["authorization", "x-api-key", "x-goog-api-key", "api-key"] {
        for value in headers.get_all(name) {
            all.extend_from_slice(name.as_bytes());
            match owner(value.as_bytes(), session) {
                Owner::Claimed(issuer, subject) => {
                    // No header contains a line break.
                    all.extend_from_slice(b"\nclaimed");
                    for part in [issuer, subject] {
                        all.extend_from_slice(&(part.len() as u64).to_le_bytes());
                        all.extend_from_slice(part.as_bytes());
                    }
                }
                Owner::OfSession => {
                    all.extend_from_slice(b"\nof the session");
                    all.extend_from_slice(session.unwrap_or_default());
                }
                Owner::Token => all.extend_from_slice(HeaderValue::as_bytes(value)),
            }
            all.push(0);
        }
    }
    let pairs = query.unwrap_or_default().split('&');
    for key in pairs.filter_map(|pair| pair.strip_prefix("key=")) {
        all.extend_from_slice(key.as_bytes());
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&str, &str)| {
            (name.parse::<HeaderName>().unwrap(), value.parse::<HeaderValue>().unwrap())
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn hop_by_hop_headers_are_removed_and_others_are_forwarded() {
        let passed = to_upstream(
            headers(&[
                ("host", "here"),
                ("connection", "close, x-own"),
                ("x-own", "1"),
                ("keep-alive", "5"),
                ("transfer-encoding", "chunked"),
                ("accept-encoding", "gzip"),
                ("content-encoding", "gzip"),
                ("content-length", "9"),
                ("authorization", "Bearer k"),
                ("anthropic-beta", "a,b"),
                ("x-anything", "2"),
            ]),
            true,
        );
        let mut names: Vec<&str> = passed.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["accept-encoding", "anthropic-beta", "authorization", "x-anything"]);
        assert_eq!(passed["accept-encoding"], "identity");
        assert!(passed["authorization"].is_sensitive());
        assert!(!format!("{passed:?}").contains("Bearer k"));
    }

    #[test]
    fn an_answer_keeps_its_length_and_its_cookies() {
        let passed = to_client(headers(&[
            ("content-length", "9"),
            ("set-cookie", "a=b"),
            ("connection", "keep-alive"),
            ("request-id", "req_1"),
        ]));
        let mut names: Vec<&str> = passed.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["content-length", "request-id", "set-cookie"]);
    }
}
