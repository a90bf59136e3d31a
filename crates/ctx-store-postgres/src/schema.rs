//! The schema: its versions, and the checks of a database.

use ctx_core::{Error, ErrorKind, Result};
use tokio_postgres::Client;

use crate::Options;
use crate::connect::Target;
use crate::error::Failure;

/// The migrations, in order. The number of a version is its place, from 1. A migration that was
/// released is never changed.
const MIGRATIONS: [&str; 2] = [include_str!("schema/1.sql"), include_str!("schema/2.sql")];

/// The version of the schema that this program uses.
pub const VERSION: i32 = MIGRATIONS.len() as i32;

/// The role that may read and write all tables: the role of the program must be a member of it.
pub const APP_ROLE: &str = "ctx_app";

/// The oldest version of PostgreSQL.
const OLDEST_SERVER: i32 = 150_000;

/// Protects a migration against another one at the same time. A lock of a transaction: it needs no
/// fencing, because the transaction ends with it.
const MIGRATION_LOCK: i64 = 0x6374_7873_746f_7265;

/// Creates the schema, or migrates it to [`VERSION`]. Returns the versions before and after. The
/// role in `url` becomes the owner of the schema; it must be allowed to create roles.
///
/// # Errors
///
/// Those of [`PostgresStore::open`](crate::PostgresStore::open); also if the schema is newer.
pub async fn migrate(url: &str) -> Result<(i32, i32)> {
    let failed = |error| Failure::from(error).into_error();
    let pool = Target::parse(url)?.pool(&Options::default())?;
    let mut client = pool.get().await.map_err(|error| Failure::of_pool(error).into_error())?;
    check_server(&client).await?;
    let transaction = client.transaction().await.map_err(failed)?;
    let lock = format!("select pg_advisory_xact_lock({MIGRATION_LOCK})");
    transaction.batch_execute(&lock).await.map_err(failed)?;
    let before = version(transaction.client()).await?;
    if before > VERSION {
        return Err(newer(before));
    }
    for (number, migration) in (1..).zip(MIGRATIONS).skip(usize::try_from(before).unwrap_or(0)) {
        transaction.batch_execute(migration).await.map_err(failed)?;
        let done = "insert into ctx.schema_version (version) values ($1)";
        transaction.execute(done, &[&number]).await.map_err(failed)?;
    }
    transaction.commit().await.map_err(failed)?;
    Ok((before, VERSION))
}

/// Checks that the program can use a database, and returns the key of its notifications.
pub(crate) async fn check(client: &Client) -> Result<String> {
    check_server(client).await?;
    match version(client).await? {
        VERSION => {}
        0 => {
            return Err(Error::new(ErrorKind::Config, "the database has no schema of ctx")
                .hint("run `ctx store migrate` with the role that owns the schema"));
        }
        older if older < VERSION => {
            return Err(Error::new(ErrorKind::Config, "the schema of the shared store is too old")
                .with("version", older)
                .with("needed", VERSION)
                .hint("run `ctx store migrate` with the role that owns the schema"));
        }
        newer_version => return Err(newer(newer_version)),
    }
    let role =
        "select rolname, rolsuper or rolbypassrls from pg_roles where rolname = current_user";
    let row = client.query_one(role, &[]).await.map_err(|e| Failure::from(e).into_error())?;
    let (name, bypasses): (String, bool) = (row.get(0), row.get(1));
    if bypasses {
        return Err(Error::new(
            ErrorKind::Config,
            "the role of the shared store would bypass the separation of tenants",
        )
        .with("role", &name)
        .hint(format!(
            "create a role for ctx: `create role ctx login password '...' in role {APP_ROLE}`"
        )));
    }
    let key = "select key::text from ctx.schema_version where version = 1";
    Ok(client.query_one(key, &[]).await.map_err(|e| Failure::from(e).into_error())?.get(0))
}

async fn check_server(client: &Client) -> Result<()> {
    let row = client
        .query_one(
            "select current_setting('server_version_num')::int,
                pg_is_in_recovery() or current_setting('transaction_read_only')::bool",
            &[],
        )
        .await
        .map_err(|error| Failure::from(error).into_error())?;
    let (number, is_standby): (i32, bool) = (row.get(0), row.get(1));
    if number < OLDEST_SERVER {
        return Err(Error::new(ErrorKind::Config, "this version of PostgreSQL is too old")
            .with("version", number / 10_000)
            .with("needed", OLDEST_SERVER / 10_000)
            .hint("upgrade the server of the shared store"));
    }
    if is_standby {
        return Err(Error::new(ErrorKind::Upstream, "the server of the shared store is read-only")
            .hint(
                "let store.url name the primary, or add target_session_attrs=read-write; the role \
                 may be read-only, too (default_transaction_read_only)",
            )
            .retryable());
    }
    Ok(())
}

/// Returns the version of the schema; 0 if there is none.
async fn version(client: &Client) -> Result<i32> {
    let failed = |error| Failure::from(error).into_error();
    let exists = "select to_regclass('ctx.schema_version') is not null";
    if !client.query_one(exists, &[]).await.map_err(failed)?.get::<_, bool>(0) {
        return Ok(0);
    }
    let newest = "select coalesce(max(version), 0) from ctx.schema_version";
    Ok(client.query_one(newest, &[]).await.map_err(failed)?.get(0))
}

fn newer(version: i32) -> Error {
    Error::new(ErrorKind::Config, "the schema of the shared store is newer than this program")
        .with("version", version)
        .with("known", VERSION)
        .hint("install the newest ctx on this host")
}
