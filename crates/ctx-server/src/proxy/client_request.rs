//! A client's request, apart from the body.

use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, HeaderValue};
use ctx_dialect::wire::{Protocol, Route};
use ctx_model::Url;

use super::fingerprint::Fingerprint;
use super::headers;
use super::upstream::Family;

/// A conversation request. Its headers stay in memory as long as it does.
pub(super) struct ClientRequest {
    pub(super) route: Route,
    /// The headers for the provider.
    pub(super) headers: HeaderMap,
    pub(super) query: Option<String>,
    pub(super) url: Url,
    /// The provider family that it is sent to.
    pub(super) family: Family,
}

impl ClientRequest {
    pub(super) fn protocol(&self) -> Protocol {
        self.route.protocol
    }

    /// Returns the key or login of the client.
    pub(super) fn key(&self) -> Vec<u8> {
        headers::secrets(&self.headers, self.query.as_deref(), None)
    }

    /// Returns the owner of what ctx keeps for the client: its key, or its session if the key is a
    /// login that is renewed.
    pub(super) fn owner(&self) -> Vec<u8> {
        let session = Fingerprint::session(&self.headers);
        headers::secrets(&self.headers, self.query.as_deref(), session)
    }

    /// Whether the client signed the body and the host with a key of AWS.
    pub(super) fn is_signed(&self) -> bool {
        let header = self.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        header.is_some_and(|value| value.starts_with("AWS4-"))
    }

    /// Whether the client is a tool runner of Anthropic's SDKs. It continues message threads by
    /// reference; after the error that threads are not supported, it sends the whole history.
    pub(super) fn is_tool_runner(&self) -> bool {
        let helpers = self.headers.get_all("x-stainless-helper");
        let runs = |value: &HeaderValue| value.to_str().is_ok_and(|t| t.contains("BetaToolRunner"));
        self.protocol() == Protocol::Messages && helpers.iter().any(runs)
    }
}
