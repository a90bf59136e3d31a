//! Tenants: their stores over the same connections, erasure, and what erasure leaves.

use std::collections::BTreeMap;

use ctx_core::Result;

use crate::error::Failure;
use crate::{Options, PostgresStore, check_tenant};

/// The tables with rows of tenants. The schema has no others but that of its version.
const TABLES: &str = "
    select format('delete from ctx.%I where tenant = $1', tablename)
    from pg_tables where schemaname = 'ctx' and tablename <> 'schema_version' order by tablename";

const REMOVE_LOGS: &str = "
    update ctx.log set generation = generation + 1, lines = 0, changed_at = now()
    where tenant = $1 and lines > 0
    returning agent, file, generation";

const LOCK_STREAMS: &str =
    "select from ctx.stream where tenant = $1 order by agent, kind for update";

/// Forgets all that agents remember, each record with its next number.
const FORGET_ALL: &str = "
    with going as (
        select agent, kind, id, row_number() over (partition by agent, kind order by seq) as nth
        from ctx.record where tenant = $1 and kind <> 'erasure' and body is not null
    ), stream as (
        update ctx.stream as known set last = known.last + more.total
        from (select agent, kind, count(*) as total from going group by agent, kind) as more
        where known.tenant = $1 and known.agent = more.agent and known.kind = more.kind
        returning known.agent, known.kind, known.last - more.total as before
    )
    update ctx.record as old set seq = stream.before + going.nth, body = null, changed_at = now()
    from going join stream using (agent, kind)
    where old.tenant = $1 and old.agent = going.agent and old.kind = going.kind
        and old.id = going.id";

impl PostgresStore {
    /// Returns the store of another tenant, over the same connections.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`](ctx_core::ErrorKind::Config) if the tenant has no name.
    pub fn of_tenant(&self, tenant: &str) -> Result<Self> {
        check_tenant(tenant)?;
        let options = Options { tenant: tenant.to_owned(), ..self.options.clone() };
        Ok(Self { pool: self.pool.clone(), options, shared: self.shared.clone() })
    }

    /// Erases all texts of the tenant, all or none, and returns the number of their rows. Hosts of
    /// the tenant lose their leases, and can write again only under new ones. The names of logs and
    /// the ids of records stay until [`vacuum`](Self::vacuum): by them, hosts erase what they cached.
    ///
    /// # Errors
    ///
    /// Those of the database; nothing is erased then.
    pub async fn erase_tenant(&self) -> Result<u64> {
        self.repeated(move || self.erase_once()).await
    }

    async fn erase_once(&self) -> Result<u64, Failure> {
        let mut client = self.client().await?;
        let transaction = self.transaction(&mut client).await?;
        let tenant = &self.options.tenant;
        let mut rows = 0;
        // Leases first: a write that holds one ends before.
        let proxied = ["conversation", "conversation_line", "blob"];
        for table in ["lease", "host", "session", "line"].into_iter().chain(proxied) {
            let sql = format!("delete from ctx.{table} where tenant = $1");
            rows += transaction.execute(&sql, &[tenant]).await?;
        }
        let removed = transaction.query(REMOVE_LOGS, &[tenant]).await?;
        let mut logs: BTreeMap<&str, Vec<(&str, i64)>> = BTreeMap::new();
        for row in &removed {
            logs.entry(row.get(0)).or_default().push((row.get(1), row.get(2)));
        }
        for (agent, logs) in &logs {
            self.tell_erased(&transaction, agent, logs).await?;
        }
        // In a statement of its own, which sees all that was added before.
        transaction.execute(LOCK_STREAMS, &[tenant]).await?;
        rows += removed.len() as u64 + transaction.execute(FORGET_ALL, &[tenant]).await?;
        transaction.commit().await?;
        Ok(rows)
    }

    /// Deletes all rows of the tenant, also those by which hosts learn that something was erased.
    /// For a tenant that no host uses.
    ///
    /// # Errors
    ///
    /// Those of the database; nothing is deleted then.
    pub async fn drop_tenant(&self) -> Result<u64> {
        self.repeated(move || self.drop_once()).await
    }

    async fn drop_once(&self) -> Result<u64, Failure> {
        let mut client = self.client().await?;
        let transaction = self.transaction(&mut client).await?;
        let mut rows = 0;
        for table in transaction.query(TABLES, &[]).await? {
            let sql: &str = table.get(0);
            rows += transaction.execute(sql, &[&self.options.tenant]).await?;
        }
        transaction.commit().await?;
        Ok(rows)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;
    use std::task::Poll;

    use ctx_store::{Directory, SessionName};
    use ctx_testkit::postgres::PostgresServer;
    use tokio_postgres::SimpleQueryMessage;

    use crate::{Options, PostgresStore, migrate};

    /// Polls a call until it is done, `most` times at the most, and drops it.
    async fn drop_after<T>(most: usize, call: impl Future<Output = T>) {
        let (mut call, mut polls) = (pin!(call), 0);
        let polled = poll_fn(|context| {
            polls += 1;
            match call.as_mut().poll(context) {
                Poll::Pending if polls < most => Poll::Pending,
                _ => Poll::Ready(()),
            }
        });
        polled.await;
    }

    #[tokio::test]
    async fn a_dropped_call_leaves_no_tenant_on_its_connection() {
        let Some(server) = PostgresServer::start() else { return };
        migrate(&server.url("postgres")).await.unwrap();
        server.sql("create role ctx login in role ctx_app");
        let options = Options { connections: 1, ..Options::default() };
        let store = PostgresStore::open(&server.url("ctx"), options).await.unwrap();
        let session = SessionName { agent: "main".into(), key: "k".into() };
        for call in 0..60 {
            let polls = call / 3 + 1;
            match call % 3 {
                0 => drop_after(polls, store.erase_tenant()).await,
                1 => drop_after(polls, store.compare_and_put(&session, None, "{}")).await,
                _ => drop_after(polls, store.get(&session)).await,
            }
            let client = store.client().await.unwrap();
            // In a transaction that was open before, its time is earlier than the statement's.
            let left = "select coalesce(current_setting('ctx.tenant', true), ''),
                now() = statement_timestamp()";
            let rows = client.simple_query(left).await.unwrap();
            let row = rows.iter().find_map(|message| match message {
                SimpleQueryMessage::Row(row) => Some([row.get(0), row.get(1)]),
                _ => None,
            });
            assert_eq!(row, Some([Some(""), Some("t")]), "call {call}");
        }
    }
}
