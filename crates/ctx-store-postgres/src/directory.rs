//! The entries of sessions.

use async_trait::async_trait;
use ctx_core::Result;
use ctx_store::{Directory, DirectoryEntry, SessionName, changed_entry};

use crate::{PostgresStore, signed, unsigned};

const GET: &str =
    "select version, entry from ctx.session where tenant = $1 and agent = $2 and key = $3";

/// The same, as a write: its commit waits for a synchronous standby.
const SETTLE: &str = "
    select version, entry from ctx.session where tenant = $1 and agent = $2 and key = $3 for share";

/// The first version is a time: the versions of an entry that is made again differ from the earlier
/// ones, so that a repeated removal of those finds another version.
const CREATE: &str = "
    insert into ctx.session (tenant, agent, key, version, entry)
    values ($1, $2, $3, (extract(epoch from clock_timestamp()) * 1000000)::bigint, $4)
    on conflict do nothing returning version";

const CHANGE: &str = "
    update ctx.session set version = version + 1, entry = $4
    where tenant = $1 and agent = $2 and key = $3 and version = $5 returning version";

const LIST: &str = "
    select key, version, entry from ctx.session
    where tenant = $1 and agent = $2 and ($3::text is null or key > $3)
    order by key limit $4";

const AGENTS: &str = "select distinct agent from ctx.session where tenant = $1 order by agent";

/// The message makes this a write, whether or not a row is removed: its commit waits for a synchronous
/// standby. An earlier attempt may have removed the row at a server that crashed before the standby
/// had it.
const RETIRE: &str = "
    with gone as (
        delete from ctx.session
        where tenant = $1 and agent = $2 and key = $3 and version = $4 returning version
    )
    select exists (select from gone) from pg_logical_emit_message(true, 'ctx', '')";

#[async_trait]
impl Directory for PostgresStore {
    async fn get(&self, session: &SessionName) -> Result<Option<DirectoryEntry>> {
        self.entry(GET, session).await
    }

    async fn compare_and_put(
        &self,
        session: &SessionName,
        seen: Option<u64>,
        json: &str,
    ) -> Result<u64> {
        let (tenant, SessionName { agent, key }) = (&self.options.tenant, session);
        let rows = match seen {
            None => self.query(CREATE, &[tenant, agent, key, &json]).await?,
            Some(seen) => self.query(CHANGE, &[tenant, agent, key, &json, &signed(seen)]).await?,
        };
        if let Some(row) = rows.first() {
            return Ok(unsigned(row.get(0)));
        }
        // The call may be a repetition.
        let is_next = |version| seen.is_none_or(|seen| version == seen + 1);
        match self.entry(SETTLE, session).await? {
            Some(entry) if is_next(entry.version) && entry.json == json => Ok(entry.version),
            _ => Err(changed_entry(session)),
        }
    }

    async fn list(
        &self,
        agent: &str,
        after: Option<&str>,
        most: usize,
    ) -> Result<Vec<(SessionName, DirectoryEntry)>> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let rows = self.query(LIST, &[&self.options.tenant, &agent, &after, &most]).await?;
        let entry = |row: &tokio_postgres::Row| {
            let name = SessionName { agent: agent.to_owned(), key: row.get(0) };
            (name, DirectoryEntry { version: unsigned(row.get(1)), json: row.get(2) })
        };
        Ok(rows.iter().map(entry).collect())
    }

    async fn agents(&self) -> Result<Vec<String>> {
        let rows = self.query(AGENTS, &[&self.options.tenant]).await?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    async fn retire(&self, session: &SessionName, seen: u64) -> Result<()> {
        let SessionName { agent, key } = session;
        let params: &crate::Params<'_> = &[&self.options.tenant, agent, key, &signed(seen)];
        let is_gone = self.query(RETIRE, params).await?.first().is_some_and(|row| row.get(0));
        if !is_gone && self.get(session).await?.is_some() {
            return Err(changed_entry(session));
        }
        Ok(())
    }
}

impl PostgresStore {
    async fn entry(&self, sql: &str, session: &SessionName) -> Result<Option<DirectoryEntry>> {
        let SessionName { agent, key } = session;
        let rows = self.query(sql, &[&self.options.tenant, agent, key]).await?;
        let entry = |row: &tokio_postgres::Row| DirectoryEntry {
            version: unsigned(row.get(0)),
            json: row.get(1),
        };
        Ok(rows.first().map(entry))
    }
}
