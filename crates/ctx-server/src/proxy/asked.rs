//! What a client asks, apart from the body.

use axum::http::{HeaderMap, HeaderValue};
use ctx_dialect::wire::{Protocol, Route};
use ctx_model::Url;

use super::upstream::Family;

/// A request for a conversation. Its headers are in memory as long as it is.
pub(super) struct Asked {
    pub(super) route: Route,
    /// As they go to the provider.
    pub(super) headers: HeaderMap,
    pub(super) query: Option<String>,
    pub(super) url: Url,
    /// Whose API it is for.
    pub(super) family: Family,
}

impl Asked {
    pub(super) fn protocol(&self) -> Protocol {
        self.route.protocol
    }

    /// Whether it is a tool runner of Anthropic's SDKs. It continues message threads by reference, and
    /// sends its whole history where it is told that they are not served.
    pub(super) fn is_tool_runner(&self) -> bool {
        let helpers = self.headers.get_all("x-stainless-helper");
        let runs = |value: &HeaderValue| value.to_str().is_ok_and(|t| t.contains("BetaToolRunner"));
        self.protocol() == Protocol::Messages && helpers.iter().any(runs)
    }
}
