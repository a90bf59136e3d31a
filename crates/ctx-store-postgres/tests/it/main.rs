//! The store on a real server.

#![allow(clippy::unwrap_used)] // A test fails by panicking.

mod breaker;
mod conformance;
mod erased;
mod hosts;
mod isolation;
mod refused;
mod silent;
mod standby;
mod tenants;

use std::time::Duration;

use ctx_store_postgres::{Options, PostgresStore, migrate};
use ctx_testkit::postgres::PostgresServer;

/// A server with the schema and a role for the program; `None` if no server is installed.
async fn server() -> Option<PostgresServer> {
    let server = PostgresServer::start()?;
    migrate(&server.url("postgres")).await.unwrap();
    server.sql("create role ctx login in role ctx_app");
    Some(server)
}

fn tenant(name: &str) -> Options {
    let patience = Duration::from_secs(20);
    Options { tenant: name.into(), patience, ..Options::default() }
}

async fn store(server: &PostgresServer, name: &str) -> PostgresStore {
    PostgresStore::open(&server.url("ctx"), tenant(name)).await.unwrap()
}
