//! The shared store of ctx on PostgreSQL 15 or newer.
//!
//! # What
//!
//! Every row belongs to a tenant. Row level security is forced for all tables, and each transaction
//! names its tenant, so a statement without a tenant sees and writes nothing. The program's role
//! must not bypass it: [`PostgresStore::open`] refuses superusers.
//!
//! Leases are rows with an epoch and a holder, and each holder has a row with an end, by the
//! database's clock. A write locks the row of its lease, so it happens before the next grant, or is
//! refused.
//!
//! # Notes
//!
//! A call that loses its connection is repeated for [`Options::patience`]: until a standby is
//! promoted, for example. All calls can be repeated, so nothing is written twice. After that time
//! the next calls fail at once, and one of them at a time tries: see [`Options::pause`].

#![forbid(unsafe_code)]

mod breaker;
mod changes;
mod config;
mod connect;
mod directory;
mod error;
mod health;
mod lease;
mod log;
mod proxied;
mod records;
mod schema;
mod status;
mod tenant;
mod vacuum;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ctx_core::{Error, ErrorKind, Result};
use deadpool_postgres::{Client, Pool};
use futures_util::future::join4;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use breaker::Breaker;
use changes::Notifications;
pub use config::{Offline, StoreConfig, URL_VARIABLE};
use connect::Target;
use error::Failure;
pub use schema::{APP_ROLE, VERSION, migrate};
pub use status::{LeaseStatus, StoreStatus};
pub use vacuum::VacuumReport;

/// The wait before the first repetition of a call; it doubles up to a second.
const FIRST_WAIT: Duration = Duration::from_millis(50);

/// The names of the tenant for each transaction, and the time limit of its statement.
const BEGIN_TENANT: &str =
    "select set_config('ctx.tenant', $1, true), set_config('statement_timeout', $2, true)";

/// The settings of a store.
#[derive(Clone, Debug)]
pub struct Options {
    /// The tenant whose rows are read and written. Default: `default`.
    pub tenant: String,
    /// The maximum number of connections. Default: 8.
    pub connections: usize,
    /// How long one statement may run. Default: 10 seconds.
    pub statement_timeout: Duration,
    /// How long a call is repeated while the database cannot be reached. Default: 15 seconds.
    pub patience: Duration,
    /// How long the next calls fail at once after a call could not reach the database for all of
    /// `patience`. Then one of them tries once: if the database answers, all are made again, and
    /// otherwise the time begins again. Default: 1 second.
    pub pause: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            tenant: "default".to_owned(),
            connections: 8,
            statement_timeout: Duration::from_secs(10),
            patience: Duration::from_secs(15),
            pause: Duration::from_secs(1),
        }
    }
}

/// The rows of one tenant in a database.
#[derive(Clone)]
pub struct PostgresStore {
    pool: Pool,
    options: Options,
    shared: Arc<Shared>,
}

/// What all clones of a store and its tenants have in common.
struct Shared {
    breaker: Breaker,
    notifications: Arc<Notifications>,
    /// By tenant and holder.
    leases: Mutex<HashMap<(String, String), lease::Known>>,
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore").field("options", &self.options).finish_non_exhaustive()
    }
}

/// The parameters of a statement.
type Params<'a> = [&'a (dyn ToSql + Sync)];

impl PostgresStore {
    /// Opens the store at `url`, such as `postgres://user@host/database?sslmode=require`, and checks
    /// that it can be used.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] for an invalid URL, a tenant without a name, a server that is too old,
    /// a schema of another version, and a role that bypasses row level security;
    /// [`ErrorKind::Upstream`] if the database cannot be reached, refuses the login or is read-only.
    pub async fn open(url: &str, options: Options) -> Result<Self> {
        check_tenant(&options.tenant)?;
        let target = Target::parse(url)?;
        let pool = target.pool(&options)?;
        let client = pool.get().await.map_err(|error| Failure::of_pool(error).into_error())?;
        let key = schema::check(&client).await?;
        let shared = Shared {
            breaker: Breaker::default(),
            notifications: Notifications::new(target, key),
            leases: Mutex::default(),
        };
        drop(client);
        Ok(Self { pool, options, shared: Arc::new(shared) })
    }

    /// Returns its tenant.
    pub fn tenant(&self) -> &str {
        &self.options.tenant
    }

    async fn client(&self) -> Result<Client, Failure> {
        self.pool.get().await.map_err(Failure::of_pool)
    }

    /// Runs a statement in a transaction of the tenant, and repeats it while the database cannot be
    /// reached. The statement must be safe to repeat.
    async fn query(&self, sql: &str, params: &Params<'_>) -> Result<Vec<Row>> {
        self.repeated(move || self.query_once(sql, params)).await
    }

    /// Makes a call, and repeats it while the database cannot be reached. It must be safe to repeat.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Upstream`] at once, if others have just found that the database cannot be
    /// reached; the failure of the call, if a repetition cannot help, or none is left.
    async fn repeated<T, F>(&self, call: impl Fn() -> F) -> Result<T>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let mut retry = self.shared.breaker.call(&self.options)?;
        loop {
            match call().await {
                Ok(answer) => return Ok(retry.answered(answer)),
                Err(failure) => retry.wait(failure).await?,
            }
        }
    }

    /// Runs a statement in a transaction of the tenant. A connection that does not answer is closed.
    async fn query_once(&self, sql: &str, params: &Params<'_>) -> Result<Vec<Row>, Failure> {
        let client = self.client().await?;
        let done = self.limited(self.query_on(&client, sql, params)).await;
        settled(client, done)
    }

    async fn query_on(
        &self,
        client: &Client,
        sql: &str,
        params: &Params<'_>,
    ) -> Result<Vec<Row>, Failure> {
        let begin = client.prepare_cached(BEGIN_TENANT).await?;
        let statement = client.prepare_cached(sql).await?;
        let limit = self.statement_timeout();
        // All four are sent at once: one round trip.
        let (opened, named, rows, committed) = join4(
            client.batch_execute("begin"),
            client.execute(&begin, &[&self.options.tenant, &limit]),
            client.query(&statement, params),
            client.batch_execute("commit"),
        )
        .await;
        opened?;
        named?;
        let rows = rows?;
        committed?;
        Ok(rows)
    }

    /// Limits the time that is waited for the database. The outcome of a call that takes longer is
    /// not known.
    async fn limited<T>(&self, call: impl Future<Output = T>) -> Result<T, Failure> {
        let most = self.options.statement_timeout * 2;
        tokio::time::timeout(most, call).await.map_err(|_| Failure::Silent(most))
    }

    fn statement_timeout(&self) -> String {
        format!("{}ms", self.options.statement_timeout.as_millis())
    }
}

/// Ends the use of a connection. One that did not answer is closed.
fn settled<T>(client: Client, done: Result<Result<T, Failure>, Failure>) -> Result<T, Failure> {
    if done.is_err() {
        drop(Client::take(client));
    }
    done?
}

/// Locks a mutex, whether or not a thread panicked while it held the lock.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn check_tenant(name: &str) -> Result<()> {
    match name.trim() {
        "" => Err(Error::new(ErrorKind::Config, "the tenant has no name")
            .with("key", "store.tenant")
            .hint("name it, or leave the key out")),
        _ => Ok(()),
    }
}

/// Returns a number of the database, which stores none below zero.
fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

/// Returns a number for the database.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Returns a duration for the database, in seconds.
fn seconds(duration: Duration) -> f64 {
    duration.as_secs_f64()
}
