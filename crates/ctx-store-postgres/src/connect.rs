//! Connections to the database.

use std::time::Duration;

use ctx_core::{Error, ErrorKind, Result};
use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod, Runtime, Timeouts};
use rustls_platform_verifier::BuilderVerifierExt;
use tokio_postgres::config::SslMode;
use tokio_postgres::{Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::Options;
use crate::error::invalid_url;

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

pub(crate) fn pool(url: &str, options: &Options) -> Result<Pool> {
    let config = parsed(url)?;
    let checked = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let manager = match config.get_ssl_mode() {
        SslMode::Disable => Manager::from_config(config, NoTls, checked),
        _ => Manager::from_config(config, tls()?, checked),
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
