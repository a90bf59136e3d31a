//! Streamable HTTP: the same server for clients that connect to one that runs already.

use std::sync::Arc;

use axum::Router;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};

use super::{MAX_MESSAGE_BYTES, Server};

/// Where MCP is on a server of ours.
pub const PATH: &str = "/mcp";

/// The route of MCP, for a server whose [guard](crate::http) looks at `Host`, `Origin` and the token
/// before any request comes here.
///
/// No session is kept for a client, whatever revision it speaks: every request says all that is
/// needed, and an answer is one JSON object.
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
