//! The database: a primary and a synchronous standby, each with a disk of its own if mounting one is
//! permitted.

use std::time::Duration;

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

/// All tables; the system's own have no text of a session.
const TABLES: &str = "
    select format('%I.%I', schemaname, tablename) from pg_tables
    where schemaname not in ('pg_catalog', 'information_schema')";

pub(crate) struct Database {
    primary: PostgresServer,
    standby: PostgresServer,
    /// The port of the primary.
    port: watch::Sender<u16>,
    /// The network between the primary and the standby.
    replication: Relay,
    pub full_disk: FullDisk,
}

/// How often the primary's disk was full, and how often the primary ended because of that.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FullDisk {
    pub times: usize,
    pub ends: usize,
}

impl Database {
    /// Starts both; `None` if PostgreSQL is not installed.
    pub(crate) async fn start() -> Option<Self> {
        let primary = block_in_place(PostgresServer::on_small_disk)?;
        migrate(&primary.url("postgres")).await.unwrap();
        primary.sql("create role ctx login in role ctx_app");
        SETTINGS.into_iter().for_each(|sql| drop(primary.sql(sql)));
        let port = watch::Sender::new(primary.port());
        let replication = Relay::start(port.subscribe()).await;
        let standby = block_in_place(|| primary.standby(replication.port));
        Some(Self { primary, standby, port, replication, full_disk: FullDisk::default() })
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

    /// Whether its disk can be full.
    pub(crate) fn has_disk(&self) -> bool {
        self.primary.has_disk()
    }

    /// Leaves the primary's disk without space for some time. With `ends_log`, the write-ahead log
    /// needs a new file in this time, without which the primary ends.
    pub(crate) async fn fill_disk(&mut self, ends_log: bool, time: Duration) {
        let before = self.panics();
        block_in_place(|| self.primary.fill_disk());
        let sql = match ends_log {
            true => "select pg_switch_wal(), pg_logical_emit_message(true, 'full', '')",
            false => "create unlogged table full_disk as select generate_series(1, 100000)",
        };
        // The log may have one more file already.
        let refused = block_in_place(|| (0..4).any(|_| self.primary.try_sql(sql).is_err()));
        assert!(refused, "the disk is not full");
        tokio::time::sleep(time).await;
        block_in_place(|| self.primary.free_disk());
        self.full_disk.times += 1;
        self.full_disk.ends += usize::from(self.panics() > before);
    }

    fn panics(&self) -> usize {
        self.primary.log().matches("PANIC:").count()
    }

    /// Returns all rows of all tables, as text.
    pub(crate) fn dump(&self) -> String {
        let row = |table: &str| {
            self.sql(&format!("set bytea_output = 'escape'; select row::text from {table} as row"))
        };
        self.sql(TABLES).lines().map(row).collect()
    }

    pub(crate) fn sql(&self, sql: &str) -> String {
        block_in_place(|| self.primary.sql(sql))
    }
}
