//! Streamable HTTP: the same server for clients that connect to a running one.

use std::sync::Arc;

use axum::Router;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};

use super::Server;
use super::stdio::MAX_MESSAGE_BYTES;

/// The path of MCP.
pub const PATH: &str = "/mcp";

/// Returns the route of MCP, for a server whose [guard](ctx_server::http) has checked `Host`, `Origin`
/// and the token.
///
/// Stateless for all protocol revisions: every request is self-contained, and a response is one
/// JSON object.
pub fn routes(server: Server) -> Router {
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(MAX_MESSAGE_BYTES)
        .disable_allowed_hosts()
        .disable_allowed_origins();
    let sessions = Arc::new(NeverSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(server.clone()), sessions, config);
    Router::new().route_service(PATH, service)
}
