//! Access control.
//!
//! A page of another origin can make a browser send requests here. Their `Origin` names that page.
//! If its name resolves to 127.0.0.1, they look like same-origin requests; `Host` has that name.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use axum::body::Body;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Uri, Version};
use ctx_core::text::head_chars;
use ctx_core::{Error, ErrorKind};
use ctx_dialect::wire::{Route, error_body, route};
use serde_json::json;

use super::Server;

/// The token header for requests whose `authorization` is meant for the provider.
const TOKEN_HEADER: &str = "x-ctx-token";

/// The prefix of a token in a path: `/t/TOKEN/v1/messages`.
const TOKEN_PATH: &str = "/t/";

/// A secret that grants access. It is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// Creates a token.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] if it is short enough to be guessed, or not valid in a path.
    pub fn new(text: impl Into<String>) -> ctx_core::Result<Self> {
        const SHORTEST: usize = 8;
        let text = text.into();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.~".contains(c);
        if text.len() < SHORTEST || !text.chars().all(is_plain) {
            return Err(Error::new(ErrorKind::Config, "invalid server token")
                .with("shortest", SHORTEST)
                .hint(
                    "use letters, digits, '-', '_', '.' and '~', \
                     for example from `openssl rand -hex 16`",
                ));
        }
        Ok(Self(text))
    }

    /// Compares in constant time.
    fn is(&self, other: &str) -> bool {
        let (own, other) = (self.0.as_bytes(), other.as_bytes());
        let differs = own.iter().zip(other).fold(0, |differs, (a, b)| differs | (a ^ b));
        own.len() == other.len() && std::hint::black_box(differs) == 0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

/// The rights of an admitted request, stored in its extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Whether it may write: it presented the token.
    pub writes: bool,
}

/// Decides which requests a server admits.
#[derive(Debug)]
pub(super) struct Guard {
    /// The bound address.
    pub(super) address: SocketAddr,
    pub(super) server: Server,
}

impl Guard {
    /// Admits a request and removes its token, or returns the refusal.
    pub(super) fn admit<B>(
        &self,
        mut request: Request<B>,
    ) -> Result<Request<B>, Box<Response<Body>>> {
        let in_path = take_from_path(&mut request);
        let target = route("POST", request.uri().path());
        let header = request.headers_mut().remove(TOKEN_HEADER);
        let header = header.as_ref().and_then(|value| value.to_str().ok());
        let bearer = bearer(request.headers());
        let shown = [in_path.as_deref(), header, bearer.as_deref()];
        let is_token = |text: &str| self.server.token.as_ref().is_some_and(|token| token.is(text));
        let has_token = shown.into_iter().flatten().any(is_token);
        // The provider must not see the token.
        if bearer.as_deref().is_some_and(is_token) {
            request.headers_mut().remove(AUTHORIZATION);
        }
        let is_wrong = !has_token && (in_path.is_some() || header.is_some());
        if is_wrong || (!has_token && !self.address.ip().is_loopback()) {
            let (what, hint) = match self.server.token {
                Some(_) => (
                    "missing or invalid server token",
                    "send it as `x-ctx-token`, or start the path with /t/TOKEN",
                ),
                None => (
                    "unexpected token: this server has none",
                    "omit it, or start the server with --token or $CTX_SERVER_TOKEN",
                ),
            };
            let error = Error::new(ErrorKind::InvalidInput, what).hint(hint);
            return Err(Box::new(refusal(target.as_ref(), StatusCode::UNAUTHORIZED, &error)));
        }
        let host = host_of(&request);
        let is_many = request.headers().get_all(HOST).iter().count() > 1;
        // The request line may name a host as well, as in requests to a proxy.
        let named = request.uri().authority().map(|authority| authority.as_str());
        // HTTP/1.1 requires `Host`. Without it, the request may be meant for another server.
        let is_missing = host.is_none() && named.is_none() && request.version() == Version::HTTP_11;
        let is_unknown = is_many
            || is_missing
            || host.as_deref().into_iter().chain(named).any(|host| !self.knows(host));
        if !has_token && is_unknown {
            let error = Error::new(ErrorKind::InvalidInput, "host not allowed")
                .with("host", head_chars(host.as_deref().unwrap_or_default(), 80))
                .hint("use the address the server listens on, or add the host to server.hosts");
            return Err(Box::new(refusal(target.as_ref(), StatusCode::FORBIDDEN, &error)));
        }
        if is_cross_origin(&request, host.as_deref(), &self.server.origins) {
            let origin = request.headers().get(ORIGIN).map(HeaderValue::to_str);
            let error = Error::new(ErrorKind::InvalidInput, "origin not allowed")
                .with("origin", head_chars(origin.and_then(Result::ok).unwrap_or("?"), 80))
                .hint("open the page of this server itself, or add the origin to server.origins");
            return Err(Box::new(refusal(target.as_ref(), StatusCode::FORBIDDEN, &error)));
        }
        request.extensions_mut().insert(Access { writes: has_token });
        Ok(request)
    }

    /// Whether a `Host` value names this server.
    fn knows(&self, host: &str) -> bool {
        let name = name_of(host);
        let port = &host[name.len()..];
        let is_port = port.strip_prefix(':').is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()));
        if !port.is_empty() && !is_port {
            return false;
        }
        let name = name.to_ascii_lowercase();
        let name = name.trim_end_matches('.');
        if name == "localhost" || name.ends_with(".localhost") {
            return true;
        }
        let is_listed = |known: &String| {
            let known = known.to_ascii_lowercase();
            known == name || known == host
        };
        if self.server.hosts.iter().any(is_listed) {
            return true;
        }
        // Unlike a name, an IP address always means the same machine.
        let number = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        number.is_ok_and(|ip| {
            let own = self.address.ip();
            ip.is_loopback() || own == ip || own.is_unspecified()
        })
    }
}

/// Removes a leading token from the path.
fn take_from_path<B>(request: &mut Request<B>) -> Option<String> {
    let path = request.uri().path_and_query()?.as_str();
    let rest = path.strip_prefix(TOKEN_PATH)?;
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (token, rest) = (rest[..end].to_owned(), &rest[end..]);
    let rest = if rest.starts_with('/') { rest.to_owned() } else { format!("/{rest}") };
    *request.uri_mut() = rest.parse::<Uri>().ok()?;
    Some(token)
}

fn bearer(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim().to_owned())
}

fn host_of<B>(request: &Request<B>) -> Option<String> {
    let header = request.headers().get(HOST).map(|host| host.to_str().unwrap_or("?").to_owned());
    header.or_else(|| request.uri().authority().map(ToString::to_string))
}

/// Returns the host without its port.
fn name_of(host: &str) -> &str {
    match host.rfind(']') {
        Some(end) => &host[..=end],
        None => host.split(':').next().unwrap_or(host),
    }
}

/// Whether a page of another origin made a browser send the request. Requests for images and links
/// have no `Origin`, only `Sec-Fetch-Site`; links to this server's page are allowed.
fn is_cross_origin<B>(request: &Request<B>, host: Option<&str>, listed: &[String]) -> bool {
    let origins: Vec<_> = request.headers().get_all(ORIGIN).iter().collect();
    let mut sites = request.headers().get_all("sec-fetch-site").iter();
    let is_linked = request.uri().path() == "/";
    if let [origin] = origins[..]
        && listed.iter().any(|listed| origin == listed.as_str())
    {
        return false;
    }
    origins.len() > 1
        || !origins.iter().all(|origin| is_same_origin(origin, host))
        || sites.any(|site| site != "same-origin" && site != "none" && !is_linked)
}

fn is_same_origin(origin: &HeaderValue, host: Option<&str>) -> bool {
    let Ok(origin) = origin.to_str() else { return false };
    let authority = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    authority.zip(host).is_some_and(|(origin, host)| origin.eq_ignore_ascii_case(host))
}

/// Returns a refusal, in the format of the API if it is known.
#[must_use]
pub(crate) fn refusal(target: Option<&Route>, status: StatusCode, error: &Error) -> Response<Body> {
    let body = match target {
        Some(route) => error_body(route, status.as_u16(), error),
        None => {
            let (kind, message) = (error.kind().name(), error.to_string());
            let body = json!({ "kind": kind, "message": message, "hint": error.hint_text() });
            json!({ "error": body }).to_string()
        }
    };
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}
