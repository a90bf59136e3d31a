//! What a store has.

use ctx_core::Result;
use serde::Serialize;

use crate::{PostgresStore, VERSION, unsigned};

/// What a store has of its tenant.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StoreStatus {
    /// The tenant.
    pub tenant: String,
    /// The version of the schema.
    pub version: i32,
    /// The version of PostgreSQL.
    pub server: String,
    /// The number of sessions.
    pub sessions: u64,
    /// The number of lines of all logs.
    pub lines: u64,
    /// The number of bytes of these lines.
    pub bytes: u64,
    /// The leases that no other host can take over, in the order of their keys.
    pub leases: Vec<LeaseStatus>,
}

/// A lease in force.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LeaseStatus {
    /// The session's key.
    pub key: String,
    /// The host that holds it.
    pub holder: String,
    /// Its epoch.
    pub epoch: u64,
    /// For how many seconds it is still valid if its host renews nothing.
    pub seconds: f64,
    /// Whether another host waits for it.
    pub is_wanted: bool,
}

const COUNTS: &str = "
    select current_setting('server_version'),
        (select count(*) from ctx.session where tenant = $1),
        (select count(*) from ctx.line where tenant = $1),
        (select coalesce(sum(length(body)), 0)::bigint from ctx.line where tenant = $1)";

const LEASES: &str = "
    select key, holder, epoch, extract(epoch from held_until - clock_timestamp())::float8,
        coalesce(wanted_until > clock_timestamp(), false)
    from ctx.lease join ctx.host using (tenant, holder)
    where tenant = $1 and held_until > clock_timestamp() order by key";

/// Logs whose lines do not count from 0 to the end of the log.
const DAMAGED: &str = "
    select log.agent || '/' || log.file from ctx.log
    left join lateral (
        select count(*) as lines, coalesce(max(seq) + 1, 0) as next from ctx.line
        where line.tenant = $1 and line.agent = log.agent and line.file = log.file
    ) as found on true
    where log.tenant = $1 and (found.lines <> log.lines or found.next <> log.lines)
    order by 1";

impl PostgresStore {
    /// Returns what the store has of its tenant.
    ///
    /// # Errors
    ///
    /// Those of the database.
    pub async fn status(&self) -> Result<StoreStatus> {
        let tenant = &self.options.tenant;
        let rows = self.query(COUNTS, &[tenant]).await?;
        let (server, [sessions, lines, bytes]) = match rows.first() {
            Some(row) => (row.get(0), [1, 2, 3].map(|at| unsigned(row.get(at)))),
            None => (String::new(), [0; 3]),
        };
        let leases = self.query(LEASES, &[tenant]).await?;
        let lease = |row: &tokio_postgres::Row| LeaseStatus {
            key: row.get(0),
            holder: row.get(1),
            epoch: unsigned(row.get(2)),
            seconds: row.get(3),
            is_wanted: row.get(4),
        };
        Ok(StoreStatus {
            tenant: tenant.clone(),
            version: VERSION,
            server,
            sessions,
            lines,
            bytes,
            leases: leases.iter().map(lease).collect(),
        })
    }

    /// Returns the logs whose lines are incomplete, as `agent/file`: their rows were changed by
    /// another program.
    ///
    /// # Errors
    ///
    /// Those of the database.
    pub async fn damaged_logs(&self) -> Result<Vec<String>> {
        let rows = self.query(DAMAGED, &[&self.options.tenant]).await?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }
}
