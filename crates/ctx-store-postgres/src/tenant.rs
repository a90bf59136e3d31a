//! Tenants: their stores over the same connections, and erasure.

use ctx_core::Result;

use crate::error::Failure;
use crate::{Options, PostgresStore, Retry, check_tenant};

/// The tables with rows of tenants. The schema has no others but that of its version.
const TABLES: &str = "
    select format('delete from ctx.%I where tenant = $1', tablename)
    from pg_tables where schemaname = 'ctx' and tablename <> 'schema_version' order by tablename";

impl PostgresStore {
    /// Returns the store of another tenant, over the same connections.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`](ctx_core::ErrorKind::Config) if the tenant has no name.
    pub fn of_tenant(&self, tenant: &str) -> Result<Self> {
        check_tenant(tenant)?;
        let options = Options { tenant: tenant.to_owned(), ..self.options.clone() };
        Ok(Self { pool: self.pool.clone(), options })
    }

    /// Removes all rows of the tenant, all or none, and returns their number. Hosts of the tenant
    /// lose their leases, and can write again only under new ones. Their homes keep what they
    /// cached: erase those first, or a host stores the sessions again.
    ///
    /// # Errors
    ///
    /// Those of the database; nothing is removed then.
    pub async fn erase_tenant(&self) -> Result<u64> {
        let mut retry = Retry::new(self.options.patience);
        loop {
            match self.erase_once().await {
                Ok(rows) => return Ok(rows),
                Err(failure) => retry.wait(failure).await?,
            }
        }
    }

    async fn erase_once(&self) -> Result<u64, Failure> {
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
