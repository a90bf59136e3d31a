//! The logs of sessions.

use async_trait::async_trait;
use ctx_core::{Error, ErrorKind, Result};
use ctx_store::{Lease, Line, LogHead, LogName, RecordKind, SessionLogs, lost_lease, moved_head};
use deadpool_postgres::Client;
use tokio_postgres::Transaction;

use crate::error::Failure;
use crate::records::PUT;
use crate::{BEGIN_TENANT, PostgresStore, settled, signed, unsigned};

/// The lease of a write. Its row stays locked until the transaction ends, so that the next grant
/// waits for the write. Whether the time of its holder has passed does not matter: until another host
/// is granted the session, nothing can come in between.
macro_rules! held {
    () => {
        "select from ctx.lease where tenant = $1 and agent = $2 and key = $3 and epoch = $4
            and holder is not null for share"
    };
}

/// Appends to a log that ends at `$6`, `$7`.
const APPEND: &str = concat!(
    "with held as materialized (",
    held!(),
    "), moved as (
        update ctx.log set lines = lines + cardinality($8::text[])
        where tenant = $1 and agent = $2 and file = $5 and generation = $6 and lines = $7
            and exists (select from held)
        returning lines
    )
    insert into ctx.line (tenant, agent, file, seq, id, epoch, body)
    select $1, $2, $5, $7::bigint + new.nth - 1, new.id, $4::bigint, new.body
    from moved, unnest($8::text[], $9::bytea[]) with ordinality as new (id, body, nth)
    returning seq"
);

/// Creates a log with its first lines.
const CREATE: &str = concat!(
    "with held as materialized (",
    held!(),
    "), moved as (
        insert into ctx.log (tenant, agent, file, generation, lines)
        select $1, $2, $5, $6::bigint, $7::bigint + cardinality($8::text[]) from held
        on conflict do nothing
        returning lines
    )
    insert into ctx.line (tenant, agent, file, seq, id, epoch, body)
    select $1, $2, $5, $7::bigint + new.nth - 1, new.id, $4::bigint, new.body
    from moved, unnest($8::text[], $9::bytea[]) with ordinality as new (id, body, nth)
    returning seq"
);

const HEAD: &str =
    "select generation, lines from ctx.log where tenant = $1 and agent = $2 and file = $3";

const LOGS: &str = "
    select file, generation, lines from ctx.log
    where tenant = $1 and agent = $2 and ($3::text is null or file > $3)
    order by file limit $4";

/// The lines from `$4` on: the first one, and those that end within `$5` bytes.
macro_rules! lines {
    () => {
        "select id, body, seq from (
            select id, body, seq, sum(length(body)) over (order by seq) as bytes
            from ctx.line where tenant = $1 and agent = $2 and file = $3
                and seq >= $4::bigint and seq < $4 + 10000
        ) as next
        where (bytes <= $5::bigint or seq = $4)"
    };
}

const READ: &str = concat!(lines!(), " order by seq");

/// The same, with a lock of the log. That is a write: its commit waits until a synchronous standby
/// has all that it read. After a crash, a server also shows what no standby has.
const READ_SETTLED: &str = concat!(
    "with locked as materialized (
        select from ctx.log where tenant = $1 and agent = $2 and file = $3 for share
    ) ",
    lines!(),
    " and exists (select from locked) order by seq"
);

/// The holder of a session that is held under another epoch, or is not held.
const HOLDER: &str = "
    select epoch = $4 and holder is not null, holder from ctx.lease
    where tenant = $1 and agent = $2 and key = $3";

#[async_trait]
impl SessionLogs for PostgresStore {
    async fn head(&self, log: &LogName) -> Result<Option<LogHead>> {
        let rows = self.query(HEAD, &[&self.options.tenant, &log.agent, &log.file]).await?;
        let head = |row: &tokio_postgres::Row| LogHead {
            generation: unsigned(row.get(0)),
            lines: unsigned(row.get(1)),
        };
        Ok(rows.first().map(head))
    }

    async fn logs(
        &self,
        agent: &str,
        after: Option<&str>,
        most: usize,
    ) -> Result<Vec<(LogName, LogHead)>> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let rows = self.query(LOGS, &[&self.options.tenant, &agent, &after, &most]).await?;
        let log = |row: &tokio_postgres::Row| {
            let name = LogName { agent: agent.to_owned(), file: row.get(0) };
            (name, LogHead { generation: unsigned(row.get(1)), lines: unsigned(row.get(2)) })
        };
        Ok(rows.iter().map(log).collect())
    }

    async fn append(
        &self,
        lease: &Lease,
        log: &LogName,
        at: LogHead,
        lines: &[Line],
    ) -> Result<LogHead> {
        if lines.is_empty() {
            return Ok(at);
        }
        if log.agent != lease.session.agent {
            return Err(lost_lease(lease, None).with("log of the agent", &log.agent));
        }
        let after = LogHead { lines: at.lines + lines.len() as u64, ..at };
        let (tenant, session) = (&self.options.tenant, &lease.session);
        let ids: Vec<&str> = lines.iter().map(|line| &*line.id).collect();
        let bodies: Vec<&[u8]> = lines.iter().map(|line| &*line.bytes).collect();
        let (epoch, generation, from) =
            (signed(lease.epoch), signed(at.generation), signed(at.lines));
        let sql = if at == LogHead::NEW { CREATE } else { APPEND };
        let params: &crate::Params<'_> = &[
            tenant,
            &log.agent,
            &session.key,
            &epoch,
            &log.file,
            &generation,
            &from,
            &ids,
            &bodies,
        ];
        match self.query(sql, params).await {
            Ok(rows) if rows.len() == lines.len() => return Ok(after),
            // An earlier attempt may have been committed, so that the same ids exist.
            Err(error) if !is_duplicate(&error) => return Err(error),
            _ => {}
        }
        let found = self.head(log).await?;
        let is_there =
            found.is_some_and(|head| head.generation == at.generation && head.lines >= after.lines);
        if is_there && self.has(log, at.lines, lines).await? {
            return Ok(after);
        }
        self.check_lease(lease).await?;
        Err(moved_head(log, at, found))
    }

    async fn read(&self, log: &LogName, from: u64, most: usize) -> Result<Vec<Line>> {
        self.lines(READ, log, from, most).await
    }

    async fn replace(
        &self,
        lease: &Lease,
        log: &LogName,
        at: LogHead,
        lines: &[Line],
    ) -> Result<LogHead> {
        let after = LogHead { generation: at.generation + 1, lines: lines.len() as u64 };
        if self.repeated(move || self.replace_once(lease, log, at, lines)).await? {
            return Ok(after);
        }
        let found = self.head(log).await?;
        // The call may be a repetition.
        if found == Some(after) && self.has(log, 0, lines).await? {
            return Ok(after);
        }
        self.check_lease(lease).await?;
        Err(moved_head(log, at, found))
    }

    async fn remove(&self, lease: &Lease, log: &LogName) -> Result<()> {
        self.repeated(move || self.remove_once(lease, log)).await?;
        self.check_lease(lease).await
    }
}

impl PostgresStore {
    /// Begins a transaction of the tenant.
    pub(crate) async fn transaction<'a>(
        &self,
        client: &'a mut Client,
    ) -> Result<deadpool_postgres::Transaction<'a>, Failure> {
        let transaction = client.transaction().await?;
        let params: &crate::Params<'_> = &[&self.options.tenant, &self.statement_timeout()];
        transaction.execute(BEGIN_TENANT, params).await?;
        Ok(transaction)
    }

    /// Replaces the lines of a log that ends at `at`; `false` if it does not, or if the lease is
    /// lost.
    async fn replace_once(
        &self,
        lease: &Lease,
        log: &LogName,
        at: LogHead,
        lines: &[Line],
    ) -> Result<bool, Failure> {
        let mut client = self.client().await?;
        let done = self.limited(self.replace_on(&mut client, lease, log, at, lines)).await;
        settled(client, done)
    }

    async fn replace_on(
        &self,
        client: &mut Client,
        lease: &Lease,
        log: &LogName,
        at: LogHead,
        lines: &[Line],
    ) -> Result<bool, Failure> {
        let transaction = self.transaction(client).await?;
        if !self.holds(&transaction, lease).await? {
            return Ok(false);
        }
        let tenant = &self.options.tenant;
        let (generation, before) = (signed(at.generation), signed(at.lines));
        let sql = "update ctx.log set generation = generation + 1, lines = $6, changed_at = now()
            where tenant = $1 and agent = $2 and file = $3 and generation = $4 and lines = $5";
        let params: &crate::Params<'_> =
            &[tenant, &log.agent, &log.file, &generation, &before, &signed(lines.len() as u64)];
        if transaction.execute(sql, params).await? == 0 {
            return Ok(false);
        }
        self.clear(&transaction, log).await?;
        let ids: Vec<&str> = lines.iter().map(|line| &*line.id).collect();
        let bodies: Vec<&[u8]> = lines.iter().map(|line| &*line.bytes).collect();
        let sql = "insert into ctx.line (tenant, agent, file, seq, id, epoch, body)
            select $1, $2, $3, new.nth - 1, new.id, $4::bigint, new.body
            from unnest($5::text[], $6::bytea[]) with ordinality as new (id, body, nth)";
        let params: &crate::Params<'_> =
            &[tenant, &log.agent, &log.file, &signed(lease.epoch), &ids, &bodies];
        transaction.execute(sql, params).await?;
        self.tell_erased(&transaction, &log.agent, &[(&log.file, generation + 1)]).await?;
        transaction.commit().await?;
        Ok(true)
    }

    /// Removes the lines of a log, unless the lease is lost.
    async fn remove_once(&self, lease: &Lease, log: &LogName) -> Result<(), Failure> {
        let mut client = self.client().await?;
        let done = self.limited(self.remove_on(&mut client, lease, log)).await;
        settled(client, done)
    }

    async fn remove_on(
        &self,
        client: &mut Client,
        lease: &Lease,
        log: &LogName,
    ) -> Result<(), Failure> {
        let transaction = self.transaction(client).await?;
        if self.holds(&transaction, lease).await? {
            self.clear(&transaction, log).await?;
            let sql = "
                update ctx.log set generation = generation + 1, lines = 0, changed_at = now()
                where tenant = $1 and agent = $2 and file = $3 and lines > 0
                returning generation";
            let params: &crate::Params<'_> = &[&self.options.tenant, &log.agent, &log.file];
            if let Some(row) = transaction.query_opt(sql, params).await? {
                let erased: &[(&str, i64)] = &[(&log.file, row.get(0))];
                self.tell_erased(&transaction, &log.agent, erased).await?;
            }
        }
        Ok(transaction.commit().await?)
    }

    /// Adds the records of logs of one agent that were replaced or removed, with their generations.
    pub(crate) async fn tell_erased(
        &self,
        transaction: &Transaction<'_>,
        agent: &str,
        logs: &[(&str, i64)],
    ) -> Result<(), Failure> {
        let (files, generations): (Vec<&str>, Vec<Vec<u8>>) =
            logs.iter().map(|(file, number)| (*file, number.to_string().into_bytes())).unzip();
        let kind = RecordKind::Erasure.name();
        let params: &crate::Params<'_> =
            &[&self.options.tenant, &agent, &kind, &files, &generations];
        transaction.execute(PUT, params).await?;
        Ok(())
    }

    /// Whether the lease is in force. It stays so until the transaction ends.
    async fn holds(&self, transaction: &Transaction<'_>, lease: &Lease) -> Result<bool, Failure> {
        let (session, epoch) = (&lease.session, signed(lease.epoch));
        let params: &crate::Params<'_> =
            &[&self.options.tenant, &session.agent, &session.key, &epoch];
        Ok(!transaction.query(held!(), params).await?.is_empty())
    }

    async fn clear(&self, transaction: &Transaction<'_>, log: &LogName) -> Result<(), Failure> {
        let sql = "delete from ctx.line where tenant = $1 and agent = $2 and file = $3";
        transaction.execute(sql, &[&self.options.tenant, &log.agent, &log.file]).await?;
        Ok(())
    }

    async fn lines(&self, sql: &str, log: &LogName, from: u64, most: usize) -> Result<Vec<Line>> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let (tenant, from) = (&self.options.tenant, signed(from));
        let rows = self.query(sql, &[tenant, &log.agent, &log.file, &from, &most]).await?;
        if let Some((missing, _)) =
            (from..).zip(&rows).find(|(seq, row)| row.get::<_, i64>(2) != *seq)
        {
            return Err(Error::new(ErrorKind::Corrupt, "a line is missing in the shared store")
                .with("log", format_args!("{}/{}", log.agent, log.file))
                .with("line", missing)
                .hint(
                    "another program changed its rows: restore them from a backup; a host that \
                     had the session has the line in its file",
                ));
        }
        Ok(rows.iter().map(|row| Line { id: row.get(0), bytes: row.get(1) }).collect())
    }

    /// Whether the log has these lines from number `from` on, and cannot lose them by a failover.
    async fn has(&self, log: &LogName, from: u64, lines: &[Line]) -> Result<bool> {
        let mut at = 0;
        while at < lines.len() {
            let bytes = lines[at..].iter().map(|line| line.bytes.len()).sum();
            let found = self.lines(READ_SETTLED, log, from + at as u64, bytes).await?;
            if found.is_empty()
                || !lines[at..].starts_with(&found[..found.len().min(lines.len() - at)])
            {
                return Ok(false);
            }
            at += found.len();
        }
        Ok(true)
    }

    /// # Errors
    ///
    /// [`lost_lease`] if the lease is not in force.
    async fn check_lease(&self, lease: &Lease) -> Result<()> {
        let (session, epoch) = (&lease.session, signed(lease.epoch));
        let params: &crate::Params<'_> =
            &[&self.options.tenant, &session.agent, &session.key, &epoch];
        let rows = self.query(HOLDER, params).await?;
        match rows.first() {
            Some(row) if row.get(0) => Ok(()),
            Some(row) => Err(lost_lease(lease, row.get(1))),
            None => Err(lost_lease(lease, None)),
        }
    }
}

/// Whether a statement was refused because a line with the same id or number exists.
fn is_duplicate(error: &ctx_core::Error) -> bool {
    let source = std::error::Error::source(error);
    let database = source.and_then(|source| source.downcast_ref::<tokio_postgres::Error>());
    database.and_then(tokio_postgres::Error::code)
        == Some(&tokio_postgres::error::SqlState::UNIQUE_VIOLATION)
}
