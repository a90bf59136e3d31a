//! Errors of the database, and what to do about them.

use std::time::Duration;

use ctx_core::{Error, ErrorKind};
use deadpool_postgres::{PoolError, TimeoutType};
use tokio_postgres::error::{DbError, Severity, SqlState};

/// What a server says that begins or ends.
const ENDING: [SqlState; 3] =
    [SqlState::ADMIN_SHUTDOWN, SqlState::CRASH_SHUTDOWN, SqlState::CANNOT_CONNECT_NOW];

/// What it says if another transaction was in the way.
const IN_THE_WAY: [SqlState; 2] =
    [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED];

/// Why a call failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The database refused it, or cannot be reached.
    Database(tokio_postgres::Error),
    /// It did not answer within this time.
    Silent(Duration),
    /// All connections are in use.
    Busy,
    /// An error that another call would have, too.
    Lasting(Error),
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Database(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Lasting(error)
    }
}

impl Failure {
    pub(crate) fn of_pool(error: PoolError) -> Self {
        match error {
            PoolError::Backend(error) => Self::Database(error),
            PoolError::Timeout(TimeoutType::Create) => Self::Silent(Duration::from_secs(5)),
            _ => Self::Busy,
        }
    }

    /// Whether the same call may succeed later.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            Self::Silent(_) | Self::Busy => true,
            Self::Lasting(_) => false,
            Self::Database(error) => match error.as_db_error() {
                None => is_broken(error),
                Some(found) => is_away(found) || IN_THE_WAY.contains(found.code()),
            },
        }
    }

    /// Whether the database cannot be reached, or cannot be used by anyone just now.
    pub(crate) fn is_unreachable(&self) -> bool {
        match self {
            Self::Silent(_) => true,
            Self::Busy | Self::Lasting(_) => false,
            Self::Database(error) => match error.as_db_error() {
                None => is_broken(error),
                Some(found) => is_away(found),
            },
        }
    }

    pub(crate) fn into_error(self) -> Error {
        let error = match self {
            Self::Lasting(error) => return error,
            Self::Silent(waited) => {
                let error = unreachable("the database of the shared store does not answer");
                return error.with("seconds", waited.as_secs());
            }
            Self::Busy => {
                return Error::new(
                    ErrorKind::Timeout,
                    "all connections to the shared store are busy",
                )
                .hint("set store.connections to a larger number")
                .retryable();
            }
            Self::Database(error) => error,
        };
        let Some(found) = error.as_db_error() else {
            return match is_broken(&error) {
                true => unreachable("the database of the shared store cannot be reached"),
                false => Error::new(ErrorKind::Config, "the shared store cannot be used").hint(
                    "correct store.url or CTX_STORE_URL; PGPASSWORD can have the password, and \
                     sslmode=prefer uses TLS only if the server has it",
                ),
            }
            .source(error);
        };
        let (kind, what, hint) = of_code(found.code());
        // A disk is seldom freed within the time that a call is repeated for, so the call fails at
        // once; later it may succeed.
        let is_for_now = is_ending(found) || *found.code() == SqlState::DISK_FULL;
        let error = Error::new(kind, what).with("reason", found.message()).hint(hint).source(error);
        if is_for_now { error.retryable() } else { error }
    }
}

/// Whether the server begins or ends. One that panics ends, whatever the reason: it cannot write to
/// its write-ahead log, for example. It may have committed what it was asked for.
fn is_ending(error: &DbError) -> bool {
    ENDING.contains(error.code()) || error.parsed_severity() == Some(Severity::Panic)
}

/// Whether the server begins, ends, or is not the primary any more.
fn is_away(error: &DbError) -> bool {
    is_ending(error) || *error.code() == SqlState::READ_ONLY_SQL_TRANSACTION
}

/// Returns the kind of an error of the database, its description, and a hint.
fn of_code(code: &SqlState) -> (ErrorKind, &'static str, &'static str) {
    const MIGRATE: &str = "run `ctx store migrate` with the role that owns the schema";
    let is = |codes: &[SqlState]| codes.contains(code);
    if is(&[SqlState::INVALID_PASSWORD, SqlState::INVALID_AUTHORIZATION_SPECIFICATION]) {
        let hint = "correct user and password in store.url, CTX_STORE_URL or PGPASSWORD";
        (ErrorKind::Config, "the database refuses the login of the shared store", hint)
    } else if is(&[SqlState::INVALID_CATALOG_NAME]) {
        let hint = "create the database, or correct its name in store.url";
        (ErrorKind::Config, "the database of the shared store does not exist", hint)
    } else if is(&[SqlState::UNDEFINED_TABLE, SqlState::INVALID_SCHEMA_NAME]) {
        (ErrorKind::Config, "the database has no schema of ctx", MIGRATE)
    } else if is(&[SqlState::INSUFFICIENT_PRIVILEGE]) {
        let hint = "make the role a member of ctx_app: `grant ctx_app to ROLE`; `ctx store migrate` needs \
            the owner of the database";
        (ErrorKind::Config, "the role of the shared store lacks a privilege", hint)
    } else if is(&[SqlState::READ_ONLY_SQL_TRANSACTION]) {
        let hint = "let store.url name the primary, or add target_session_attrs=read-write";
        (ErrorKind::Upstream, "the database of the shared store is read-only", hint)
    } else if is(&[SqlState::QUERY_CANCELED]) {
        let hint = "nothing was written; see docs/scale.md for sizing";
        (ErrorKind::Timeout, "a statement of the shared store took too long", hint)
    } else if is(&[SqlState::DISK_FULL]) {
        let hint = "free space on the disk of the database, then repeat the request";
        (ErrorKind::Upstream, "the disk of the database is full", hint)
    } else if is(&ENDING) {
        let hint = "start the database, or wait until it has recovered";
        (ErrorKind::Upstream, "the database of the shared store is not running", hint)
    } else {
        let hint = "nothing was written; `ctx store check` examines the store";
        (ErrorKind::Upstream, "the database of the shared store failed", hint)
    }
}

/// Returns the error of a database that cannot be reached.
pub(crate) fn unreachable(what: &'static str) -> Error {
    Error::new(ErrorKind::Upstream, what)
        .hint("start the database, or correct store.url or CTX_STORE_URL")
        .retryable()
}

/// Whether a connection failed or broke.
fn is_broken(error: &tokio_postgres::Error) -> bool {
    let source = std::error::Error::source(error);
    error.is_closed() || source.is_some_and(|source| source.is::<std::io::Error>())
}

/// Returns the error of a URL that cannot be used.
pub(crate) fn invalid_url(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::new(ErrorKind::Config, "invalid URL of the shared store")
        .hint(
            "write store.url as postgres://USER:PASSWORD@HOST:5432/DATABASE?sslmode=require, with \
             other characters percent-encoded; sslmode is disable, prefer or require",
        )
        .source(error)
}
