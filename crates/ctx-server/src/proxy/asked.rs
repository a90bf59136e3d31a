//! What a client asks, apart from the body.

use axum::http::HeaderMap;
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
}
