//! Deletes the rows by which hosts learn of what was erased, once they are old.

use std::time::Duration;

use ctx_core::Result;
use ctx_store::{Blobs, Conversations, EXPIRING};
use serde::Serialize;

use crate::{PostgresStore, seconds, unsigned};

/// The maximum number of rows that one statement deletes.
const BATCH: i64 = 10_000;

/// What was deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VacuumReport {
    /// The number of logs without lines.
    pub logs: u64,
    /// The number of ids of forgotten records.
    pub forgotten: u64,
    /// The number of records of logs that were replaced or removed.
    pub erasures: u64,
    /// The number of leases that were given back, or whose hosts are dead.
    pub leases: u64,
    /// The number of dead hosts.
    pub hosts: u64,
    /// The number of conversations of a proxy.
    pub conversations: u64,
    /// The number of other values of a proxy.
    pub blobs: u64,
}

/// The time before which rows are old.
macro_rules! old {
    () => {
        "clock_timestamp() - make_interval(secs => $2)"
    };
}

/// Deletes rows of a table that meet a condition.
macro_rules! delete {
    ($table:literal, $($condition:expr),+) => {
        concat!(
            "with gone as (
                delete from ctx.",
            $table,
            " as old where tenant = $1 and ctid = any(array(
                    select ctid from ctx.",
            $table,
            " as old where tenant = $1 and ",
            $($condition,)+
            " limit $3)) and ",
            $($condition,)+
            " returning 1
            )
            select count(*) from gone"
        )
    };
}

impl PostgresStore {
    /// Deletes what erasures have left, what dead hosts have held, and what replicas of a proxy have
    /// not used, if it is older than `age`; also leases that were given back. A host that was away
    /// for longer may store again what was erased.
    ///
    /// # Errors
    ///
    /// Those of the database; a part may be deleted then.
    pub async fn vacuum(&self, age: Duration) -> Result<VacuumReport> {
        const DEAD: &str = delete!(
            "lease",
            "(holder is null or not exists (select from ctx.host where host.tenant = $1
                and host.holder = old.holder and held_until > ",
            old!(),
            "))"
        );
        let erased = |sql| self.delete(sql, age);
        Ok(VacuumReport {
            logs: erased(delete!("log", "lines = 0 and changed_at <= ", old!())).await?,
            forgotten: erased(delete!("record", "body is null and changed_at <= ", old!())).await?,
            erasures: erased(delete!("record", "kind = 'erasure' and changed_at <= ", old!()))
                .await?,
            leases: erased(DEAD).await?,
            hosts: erased(delete!("host", "held_until <= ", old!())).await?,
            conversations: self.expire_conversations(age).await?,
            blobs: self.expire_blobs(EXPIRING, age).await?,
        })
    }

    async fn delete(&self, sql: &str, age: Duration) -> Result<u64> {
        let mut total = 0;
        loop {
            let rows = self.query(sql, &[&self.options.tenant, &seconds(age), &BATCH]).await?;
            let deleted = rows.first().map_or(0, |row| unsigned(row.get(0)));
            total += deleted;
            if deleted == 0 {
                return Ok(total);
            }
        }
    }
}
