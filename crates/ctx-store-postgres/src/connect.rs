//! Connections to the database.

use std::future::poll_fn;
use std::time::Duration;

use ctx_core::{Error, ErrorKind, Result};
use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod, Runtime, Timeouts};
use rustls_platform_verifier::BuilderVerifierExt;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_postgres::config::SslMode;
use tokio_postgres::{AsyncMessage, Client, Config, Connection, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::Options;
use crate::error::{Failure, invalid_url};

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(5);

/// The name of the program in the database's list of connections.
const NAME: &str = "ctx";

/// Returns the parsed URL. The server's certificate is checked whenever TLS is used.
fn parsed(url: &str) -> Result<Config> {
    let mut config: Config = url.parse().map_err(invalid_url)?;
    if config.get_password().is_none()
        && let Ok(password) = std::env::var("PGPASSWORD")
    {
        config.password(password);
    }
    if config.get_application_name().is_none() {
        config.application_name(NAME);
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT);
    }
    config.tcp_user_timeout(CONNECT * 2);
    Ok(config)
}

/// Returns what makes TLS connections.
fn tls() -> Result<MakeRustlsConnect> {
    let failed = |error: rustls::Error| {
        Error::new(ErrorKind::Io, "the certificates of the system cannot be read").source(error)
    };
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(BuilderVerifierExt::with_platform_verifier)
        .map_err(failed)?
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

/// A database, and how it is reached.
#[derive(Clone)]
pub(crate) struct Target {
    config: Config,
    /// Absent if TLS is not used.
    tls: Option<MakeRustlsConnect>,
}

impl Target {
    /// Reads a URL.
    pub(crate) fn parse(url: &str) -> Result<Self> {
        let config = parsed(url)?;
        let tls = match config.get_ssl_mode() {
            SslMode::Disable => None,
            _ => Some(tls()?),
        };
        Ok(Self { config, tls })
    }

    /// Returns a pool of connections.
    pub(crate) fn pool(&self, options: &Options) -> Result<Pool> {
        let (config, checked) =
            (self.config.clone(), ManagerConfig { recycling_method: RecyclingMethod::Fast });
        let manager = match &self.tls {
            None => Manager::from_config(config, NoTls, checked),
            Some(tls) => Manager::from_config(config, tls.clone(), checked),
        };
        let timeouts = Timeouts {
            wait: Some(options.statement_timeout),
            create: Some(CONNECT),
            recycle: Some(CONNECT),
        };
        let pool = Pool::builder(manager)
            .max_size(options.connections.max(1))
            .timeouts(timeouts)
            .runtime(Runtime::Tokio1)
            .build();
        pool.map_err(|error| {
            Error::new(ErrorKind::Contract, "the pool of connections cannot be made").source(error)
        })
    }

    /// Connects outside of the pool. `received` gets the notifications, and `None` when the
    /// connection is closed.
    pub(crate) async fn connect(
        &self,
        received: impl Fn(Option<&str>) + Send + 'static,
    ) -> Result<Client, Failure> {
        match &self.tls {
            None => Ok(driven(self.config.connect(NoTls).await?, received)),
            Some(tls) => Ok(driven(self.config.connect(tls.clone()).await?, received)),
        }
    }
}

/// Runs a connection in the background.
fn driven<S, T>(
    (client, mut connection): (Client, Connection<S, T>),
    received: impl Fn(Option<&str>) + Send + 'static,
) -> Client
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    tokio::spawn(async move {
        while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
            if let AsyncMessage::Notification(notification) = message {
                received(Some(notification.payload()));
            }
        }
        received(None);
    });
    client
}
