//! Listening: what the proxy, the page and the tools over HTTP stand on.
//!
//! [`Server::bind`] takes an address, [`Bound::serve`] answers on it until it is told to stop.
//! Between the two a host learns the address ([`Bound::address`]), which is new where port 0 was
//! asked for. Whatever the router of a host answers, a request passes the `guard` first: `Host`,
//! `Origin` and the token.

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

pub use guard::{Access, TOKEN_HEADER, Token, refusal};
pub use metrics::{
    BreakLabels, Metrics, RequestLabels, SummaryLabels, UnwrittenLabels, status_routes,
};
pub use shutdown::Shutdown;

/// How a server listens.
#[derive(Clone, Debug)]
pub struct Server {
    /// Where.
    pub listen: SocketAddr,
    /// What anything but loopback, and everything that writes, has to show.
    pub token: Option<Token>,
    /// Names that a `Host` header may have besides those of loopback and of the address.
    pub hosts: Vec<String>,
    /// Origins whose pages may ask, besides the server's own.
    pub origins: Vec<String>,
    /// How long running answers are waited for at the end. Default: 30 s.
    pub grace: Duration,
    /// How long a client may take nothing of an answer that is ready for it: who stops reading for good
    /// would hold a seat and a connection to the provider. Default: 300 s.
    pub unread: Duration,
}

impl Server {
    /// One at an address, without a token.
    #[must_use]
    pub fn new(listen: SocketAddr) -> Self {
        let (grace, unread) = (Duration::from_secs(30), Duration::from_secs(300));
        Self { listen, token: None, hosts: Vec::new(), origins: Vec::new(), grace, unread }
    }

    /// Takes the address.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] where others than this machine can reach it and there is no token, and
    /// [`ErrorKind::Io`] where the address is taken.
    pub async fn bind(self) -> Result<Bound> {
        if !self.listen.ip().is_loopback() && self.token.is_none() {
            return Err(Error::new(
                ErrorKind::Config,
                "others could reach this address without a token",
            )
            .with("listen", self.listen)
            .hint("set $CTX_SERVER_TOKEN (or give --token), or listen on 127.0.0.1"));
        }
        let failed = |error: std::io::Error| {
            Error::new(ErrorKind::Io, "the address cannot be listened on")
                .with("listen", self.listen)
                .with("cause", &error)
                .hint("another program may have the port: take another, or 0 for any that is free")
                .source(error)
        };
        let listener = TcpListener::bind(self.listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Bound { listener, address, server: self })
    }
}

/// A server that has its address.
#[derive(Debug)]
pub struct Bound {
    listener: TcpListener,
    address: SocketAddr,
    server: Server,
}

impl Bound {
    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its URL, without a path and without a slash at the end.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Answers requests until `shutdown` says stop: then no new one is taken, and running answers
    /// are finished, as long as the grace lasts and nobody is in a hurry.
    pub async fn serve(self, router: Router, shutdown: Shutdown) {
        let guard = Arc::new(guard::Guard::new(self.address, &self.server));
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
