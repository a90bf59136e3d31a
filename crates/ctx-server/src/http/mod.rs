//! The HTTP server under the proxy, the inspector and MCP over HTTP.
//!
//! [`Server::bind`] binds an address, [`Bound::serve`] serves until shutdown. In between,
//! [`Bound::address`] returns the address, which is chosen by the system for port 0. Every request
//! passes the `guard` before it reaches the router: `Host`, `Origin` and the token are checked.

mod guard;
mod metrics;
mod serve;
mod shutdown;

#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::HeaderValue;
use ctx_core::{Error, ErrorKind, Result};
use tokio::net::TcpListener;
use tower_http::cors::{AllowHeaders, AllowMethods, CorsLayer};

pub(crate) use guard::refusal;
pub use guard::{Access, Token};
pub use metrics::{Metrics, status_routes};
pub use shutdown::Shutdown;

/// The settings of a server.
#[derive(Clone, Debug)]
pub struct Server {
    /// The address to listen on.
    pub listen: SocketAddr,
    /// The token required by non-loopback addresses and for all writes.
    pub token: Option<Token>,
    /// Names accepted in `Host` besides loopback names and the address.
    pub hosts: Vec<String>,
    /// Origins whose pages may send requests, besides the server's own.
    pub origins: Vec<String>,
    /// How long to wait for running responses at shutdown. Default: 30 s.
    pub grace: Duration,
    /// Timeout for a client that does not read a pending response: it would occupy a request slot
    /// and a connection to the provider. Default: 300 s.
    pub unread: Duration,
}

impl Server {
    /// Creates settings for an address, without a token.
    #[must_use]
    pub fn new(listen: SocketAddr) -> Self {
        let (grace, unread) = (Duration::from_secs(30), Duration::from_secs(300));
        Self { listen, token: None, hosts: Vec::new(), origins: Vec::new(), grace, unread }
    }

    /// Whether each request needs the token, also one from this machine.
    pub fn needs_token(&self) -> bool {
        !self.listen.ip().is_loopback()
    }

    /// Checks that a server for other machines has a token.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] if it has none.
    pub fn check_token(&self) -> Result<()> {
        match self.needs_token() && self.token.is_none() {
            false => Ok(()),
            true => Err(Error::new(
                ErrorKind::Config,
                "this address is reachable by others and has no token",
            )
            .with("listen", self.listen)
            .hint("set $CTX_SERVER_TOKEN (or give --token), or listen on 127.0.0.1")),
        }
    }

    /// Binds the address.
    ///
    /// # Errors
    ///
    /// Those of [`check_token`](Self::check_token), and [`ErrorKind::Io`] if the address is in use.
    pub async fn bind(self) -> Result<Bound> {
        self.check_token()?;
        let failed = |error: std::io::Error| {
            Error::new(ErrorKind::Io, "cannot listen on this address")
                .with("listen", self.listen)
                .with("cause", &error)
                .hint(match error.kind() {
                    std::io::ErrorKind::AddrInUse => {
                        "another program uses the port: choose another one, or 0 for any free port"
                    }
                    _ => "choose an address of this machine, such as 127.0.0.1:8787",
                })
                .source(error)
        };
        let listener = TcpListener::bind(self.listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Bound { listener, address, server: self })
    }
}

/// A server bound to its address.
#[derive(Debug)]
pub struct Bound {
    listener: TcpListener,
    address: SocketAddr,
    server: Server,
}

impl Bound {
    /// Returns the address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns its URL, without a path or a trailing slash.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Serves requests until `shutdown`. Then accepts no new ones, and finishes running responses
    /// within the grace period, unless an immediate shutdown is requested.
    pub async fn serve(self, router: Router, shutdown: Shutdown) {
        let guard = Arc::new(guard::Guard { address: self.address, server: self.server.clone() });
        let origins = self.server.origins.iter().filter_map(|origin| origin.parse().ok());
        let origins: Vec<HeaderValue> = origins.collect();
        let cors = CorsLayer::new()
            .allow_origin(origins)
            .allow_methods(AllowMethods::mirror_request())
            .allow_headers(AllowHeaders::mirror_request());
        let router = if self.server.origins.is_empty() { router } else { router.layer(cors) };
        serve::run(self.listener, router, guard, shutdown, &self.server).await;
    }
}
