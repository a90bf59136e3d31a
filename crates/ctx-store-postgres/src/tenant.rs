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
