//! The records of agents' memories.

use std::collections::HashMap;

use async_trait::async_trait;
use ctx_core::Result;
use ctx_store::{Change, Record, RecordChanges, RecordKind, RecordLogs};

use crate::{PostgresStore, signed, unsigned};

/// The row of the stream is locked until the transaction ends, so that numbers become visible in
/// their order.
pub(crate) const PUT: &str = "
    with stream as (
        insert into ctx.stream as known (tenant, agent, kind, last)
        values ($1, $2, $3, cardinality($4::text[]))
        on conflict (tenant, agent, kind) do update
            set last = known.last + cardinality($4::text[])
        returning last
    )
    insert into ctx.record as known (tenant, agent, kind, id, seq, body)
    select $1, $2, $3, new.id, stream.last - cardinality($4::text[]) + new.nth, new.body
    from stream, unnest($4::text[], $5::bytea[]) with ordinality as new (id, body, nth)
    on conflict (tenant, agent, kind, id) do update
        set seq = excluded.seq, body = excluded.body, changed_at = now()
        where known.body <> excluded.body";

const SINCE: &str = "
    select seq, id, body from ctx.record
    where tenant = $1 and agent = $2 and kind = $3 and seq > $4
    order by seq limit $5";

const FORGET: &str = "
    with stream as (
        insert into ctx.stream as known (tenant, agent, kind, last)
        values ($1, $2, $3, cardinality($4::text[]))
        on conflict (tenant, agent, kind) do update
            set last = known.last + cardinality($4::text[])
        returning last
    ), before as (
        select count(*) as there from ctx.record
        where tenant = $1 and agent = $2 and kind = $3 and id = any($4) and body is not null
    ), gone as (
        insert into ctx.record as known (tenant, agent, kind, id, seq, body)
        select $1, $2, $3, old.id, stream.last - cardinality($4::text[]) + old.nth, null
        from stream, unnest($4::text[]) with ordinality as old (id, nth)
        on conflict (tenant, agent, kind, id) do update
            set seq = excluded.seq, body = null, changed_at = now()
            where known.body is not null
        returning 1
    )
    select there from before where (select count(*) from gone) >= 0";

#[async_trait]
impl RecordLogs for PostgresStore {
    async fn put(&self, agent: &str, kind: RecordKind, records: &[Record]) -> Result<()> {
        // One statement cannot change a row twice: the last record of an id counts.
        let last: HashMap<&str, usize> =
            records.iter().enumerate().map(|(at, record)| (&*record.id, at)).collect();
        let last = records.iter().enumerate().filter(|(at, record)| last[&*record.id] == *at);
        let (ids, bodies): (Vec<&str>, Vec<&[u8]>) =
            last.map(|(_, record)| (&*record.id, &*record.bytes)).unzip();
        if ids.is_empty() {
            return Ok(());
        }
        let params: &crate::Params<'_> =
            &[&self.options.tenant, &agent, &kind.name(), &ids, &bodies];
        self.query(PUT, params).await?;
        self.notify(Change::Records(agent));
        Ok(())
    }

    async fn since(
        &self,
        agent: &str,
        kind: RecordKind,
        after: u64,
        most: usize,
    ) -> Result<RecordChanges> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let params: &crate::Params<'_> =
            &[&self.options.tenant, &agent, &kind.name(), &signed(after), &most];
        let mut changes = RecordChanges { next: after, ..RecordChanges::default() };
        for row in self.query(SINCE, params).await? {
            changes.next = unsigned(row.get(0));
            match row.get::<_, Option<Vec<u8>>>(2) {
                Some(bytes) => changes.records.push(Record { id: row.get(1), bytes }),
                None => changes.forgotten.push(row.get(1)),
            }
        }
        Ok(changes)
    }

    async fn forget(&self, agent: &str, kind: RecordKind, ids: &[String]) -> Result<u64> {
        let mut ids = ids.to_vec();
        ids.sort_unstable();
        ids.dedup();
        if ids.is_empty() {
            return Ok(0);
        }
        let params: &crate::Params<'_> = &[&self.options.tenant, &agent, &kind.name(), &ids];
        let rows = self.query(FORGET, params).await?;
        self.notify(Change::Records(agent));
        Ok(rows.first().map_or(0, |row| unsigned(row.get(0))))
    }
}
