//! The section `store`.

use std::sync::Arc;
use std::time::Duration;

use ctx_config::{Config, ConfigSection, Section, invalid_value};
use ctx_core::{Error, ErrorKind, Result};
use ctx_store::{AnyStore, HostOptions};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Options, PostgresStore};

/// Overrides `store.url`.
pub const URL_VARIABLE: &str = "CTX_STORE_URL";

/// A store that several hosts share. Without a URL, sessions are files of this host.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct StoreConfig {
    /// The database: `postgres://USER@HOST:5432/DATABASE?sslmode=require`. The environment variable
    /// `CTX_STORE_URL` overrides it, and `PGPASSWORD` gives its password. Default: none.
    #[serde(serialize_with = "ctx_config::without_password")]
    pub url: Option<String>,
    /// The tenant whose sessions are used. Default: `default`.
    pub tenant: String,
    /// The name of this host in leases and errors; its process is added. Default: the name of the
    /// machine.
    pub host: Option<String>,
    /// Maximum number of connections. Default: 8.
    #[schemars(range(min = 1))]
    pub connections: usize,
    /// Seconds after which the sessions of a host that died go on at another. Default: 5.
    #[schemars(range(min = 1))]
    pub lease_seconds: u32,
    /// Seconds that a turn waits for a session that another host works on. Default: 30.
    pub wait_seconds: u32,
    /// What a turn does while the database cannot be reached. Default: `refuse`.
    pub offline: Offline,
}

/// What a turn does while the database cannot be reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Offline {
    /// It fails.
    #[default]
    Refuse,
    /// It is kept in a journal of this host while the lease is in force, with a notice, and stored
    /// later. Needs a `leaseSeconds` of about a minute.
    Journal,
}

ctx_core::partial_debug!(StoreConfig, it, tenant = it.tenant);

impl Default for StoreConfig {
    fn default() -> Self {
        Self {
            url: None,
            tenant: "default".to_owned(),
            host: None,
            connections: 8,
            lease_seconds: 5,
            wait_seconds: 30,
            offline: Offline::Refuse,
        }
    }
}

impl StoreConfig {
    /// Returns the section, with the URL of the environment.
    ///
    /// # Errors
    ///
    /// An invalid section.
    pub fn of(config: &Config) -> Result<Self> {
        let mut section: Self = config.section()?;
        if let Ok(url) = std::env::var(URL_VARIABLE)
            && !url.trim().is_empty()
        {
            section.url = Some(url);
        }
        Ok(section)
    }

    /// Opens the store that a configuration or the environment names; `None` if there is none. It
    /// can be used while the tokio runtime of this call exists.
    ///
    /// # Errors
    ///
    /// An invalid section, and those of [`PostgresStore::open`].
    pub async fn open_configured(config: &Config) -> Result<Option<(AnyStore, HostOptions)>> {
        let section = Self::of(config)?;
        if section.url.is_none() {
            return Ok(None);
        }
        let store: AnyStore = Arc::new(section.open().await?);
        Ok(Some((store, section.host())))
    }

    /// Opens its store.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] without a URL, and those of [`PostgresStore::open`].
    pub async fn open(&self) -> Result<PostgresStore> {
        let patience = Options::default().patience;
        let most = match self.offline {
            Offline::Refuse => patience,
            // The lease must be in force when a call is given up.
            Offline::Journal => Duration::from_secs(self.lease_seconds.into()) / 4,
        };
        self.open_within(patience.min(most)).await
    }

    /// Opens its store, whose calls are repeated for `patience` while the database cannot be reached.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open).
    pub async fn open_within(&self, patience: Duration) -> Result<PostgresStore> {
        let options = Options {
            tenant: self.tenant.clone(),
            connections: self.connections,
            patience,
            ..Options::default()
        };
        PostgresStore::open(self.url()?, options).await
    }

    /// Returns its URL.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] if there is none.
    pub fn url(&self) -> Result<&str> {
        self.url.as_deref().ok_or_else(|| {
            Error::new(ErrorKind::Config, "no shared store is configured")
                .with("key", "store.url")
                .hint(format!("set store.url or {URL_VARIABLE} to postgres://USER@HOST/DATABASE"))
        })
    }

    /// Returns the part of this host.
    pub fn host(&self) -> HostOptions {
        let default = HostOptions::default();
        HostOptions {
            name: self.host.clone().unwrap_or(default.name),
            lease: Duration::from_secs(self.lease_seconds.into()),
            wait: Duration::from_secs(self.wait_seconds.into()),
            journal: self.offline == Offline::Journal,
        }
    }
}

impl Section for StoreConfig {
    const PATH: &'static str = "store";

    fn check(&self) -> Result<()> {
        for (key, value) in
            [("connections", self.connections), ("leaseSeconds", self.lease_seconds as usize)]
        {
            if value == 0 {
                return Err(invalid_value::<Self>(key, value, "1 or more"));
            }
        }
        if self.tenant.trim().is_empty() {
            return Err(invalid_value::<Self>("tenant", "\"\"", "a name"));
        }
        Ok(())
    }
}

ctx_config::inventory::submit! { ConfigSection::of::<StoreConfig>(env!("CARGO_PKG_NAME")) }
