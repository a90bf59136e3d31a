//! The database: a primary and a synchronous standby.

use ctx_store_postgres::migrate;
use ctx_testkit::postgres::PostgresServer;
use tokio::sync::watch;
use tokio::task::block_in_place;

use crate::relay::{Network, Relay};

/// Each commit waits for a standby, also after a failover. A standby connects again soon.
const SETTINGS: [&str; 3] = [
    "alter system set synchronous_standby_names = '*'",
    "alter system set wal_retrieve_retry_interval = '200ms'",
    "select pg_reload_conf()",
];

pub(crate) struct Database {
    primary: PostgresServer,
    standby: PostgresServer,
    /// The port of the primary.
    port: watch::Sender<u16>,
    /// The network between the primary and the standby.
    replication: Relay,
}

impl Database {
    /// Starts both; `None` if PostgreSQL is not installed.
    pub(crate) async fn start() -> Option<Self> {
        let primary = block_in_place(PostgresServer::start)?;
        migrate(&primary.url("postgres")).await.unwrap();
        primary.sql("create role ctx login in role ctx_app");
        SETTINGS.into_iter().for_each(|sql| drop(primary.sql(sql)));
        let port = watch::Sender::new(primary.port());
        let replication = Relay::start(port.subscribe()).await;
        let standby = block_in_place(|| primary.standby(replication.port));
        Some(Self { primary, standby, port, replication })
    }

    /// Returns a network between a host and the primary.
    pub(crate) async fn network(&self) -> Relay {
        Relay::start(self.port.subscribe()).await
    }

    /// Crashes the primary, and starts it again.
    pub(crate) fn crash(&mut self) {
        block_in_place(|| {
            self.primary.crash();
            self.primary.restart();
        });
    }

    pub(crate) fn set_replication(&self, network: Network) {
        self.replication.set(network);
    }

    /// Kills the primary, promotes the standby, and starts another standby.
    pub(crate) fn fail_over(&mut self) {
        block_in_place(|| {
            self.primary.kill();
            self.replication.set(Network::Cut);
            self.standby.promote();
            self.port.send_replace(self.standby.port());
            self.replication.set(Network::Open);
            let standby = self.standby.standby(self.replication.port);
            self.primary = std::mem::replace(&mut self.standby, standby);
        });
    }

    pub(crate) fn sql(&self, sql: &str) -> String {
        block_in_place(|| self.primary.sql(sql))
    }
}
