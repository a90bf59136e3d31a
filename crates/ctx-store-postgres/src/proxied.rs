//! What the replicas of a proxy share.

use std::ops::Range;
use std::time::Duration;

use async_trait::async_trait;
use ctx_core::Result;
use ctx_store::{Blob, Blobs, Conversations, changed_conversation};

use crate::{PostgresStore, seconds, signed, unsigned};

const PUT: &str = "
    insert into ctx.blob (tenant, name, body)
    select $1, new.name, new.body from unnest($2::text[], $3::bytea[]) as new (name, body)
    on conflict (tenant, name) do update set body = excluded.body, changed_at = now()";

const CREATE: &str = "
    insert into ctx.blob (tenant, name, body) values ($1, $2, $3) on conflict do nothing
    returning body";

const GET: &str = "
    select substring(body from $3 for $4) from ctx.blob where tenant = $1 and name = $2";

/// The names that begin with `$2`. The last character of Unicode follows all others.
macro_rules! with_prefix {
    ($column:literal) => {
        concat!($column, " >= $2 and ", $column, " < $2 || chr(1114111)")
    };
}

const LIST: &str = concat!(
    "select name from ctx.blob where tenant = $1 and ",
    with_prefix!("name"),
    " order by name limit $3"
);

const EXPIRE_BLOBS: &str = concat!(
    "delete from ctx.blob where tenant = $1 and ",
    with_prefix!("name"),
    " and changed_at < now() - make_interval(secs => $3) returning 1"
);

const LIST_CONVERSATIONS: &str = concat!(
    "select id, lines from ctx.conversation where tenant = $1 and ",
    with_prefix!("id"),
    " order by id"
);

const READ: &str = "
    select body from ctx.conversation_line where tenant = $1 and id = $2 and seq >= $3
    order by seq";

/// Appends to a conversation of `$3` lines.
const EXTEND: &str = "
    with moved as (
        update ctx.conversation set lines = lines + cardinality($4::bytea[]), changed_at = now()
        where tenant = $1 and id = $2 and lines = $3
        returning lines
    )
    insert into ctx.conversation_line (tenant, id, seq, body)
    select $1, $2, $3::bigint + new.nth - 1, new.body
    from moved, unnest($4::bytea[]) with ordinality as new (body, nth)
    returning seq";

/// Begins a conversation; `$3` is 0.
const BEGIN: &str = "
    with moved as (
        insert into ctx.conversation (tenant, id, lines)
        values ($1, $2, $3::bigint + cardinality($4::bytea[]))
        on conflict do nothing
        returning lines
    )
    insert into ctx.conversation_line (tenant, id, seq, body)
    select $1, $2, $3::bigint + new.nth - 1, new.body
    from moved, unnest($4::bytea[]) with ordinality as new (body, nth)
    returning seq";

const EXPIRE_CONVERSATIONS: &str = "
    with old as (
        delete from ctx.conversation
        where tenant = $1 and changed_at < now() - make_interval(secs => $2) returning id
    ), lines as (
        delete from ctx.conversation_line where tenant = $1 and id in (select id from old)
    )
    select count(*) from old";

#[async_trait]
impl Blobs for PostgresStore {
    async fn put_blobs(&self, blobs: &[Blob]) -> Result<()> {
        let (names, bodies): (Vec<&str>, Vec<&[u8]>) =
            blobs.iter().map(|blob| (&*blob.name, &*blob.bytes)).unzip();
        self.query(PUT, &[&self.options.tenant, &names, &bodies]).await.map(drop)
    }

    async fn create_blob(&self, blob: &Blob) -> Result<Vec<u8>> {
        let params: &crate::Params<'_> = &[&self.options.tenant, &blob.name, &blob.bytes];
        loop {
            if let Some(row) = self.query(CREATE, params).await?.first() {
                return Ok(row.get(0));
            }
            if let Some(known) = self.get_blob(&blob.name, 0..u64::MAX).await? {
                return Ok(known);
            }
            // It was removed in between.
        }
    }

    async fn get_blob(&self, name: &str, range: Range<u64>) -> Result<Option<Vec<u8>>> {
        let most = u64::from(u32::MAX >> 1);
        let number = |bytes: u64| i32::try_from(bytes.min(most)).unwrap_or(i32::MAX);
        let (start, length) = (range.start.min(most - 1), range.end.saturating_sub(range.start));
        // Positions are counted from 1, and the sum of both must fit.
        let (from, length) = (number(start + 1), number(length.min(most - 1 - start)));
        let rows = self.query(GET, &[&self.options.tenant, &name, &from, &length]).await?;
        Ok(rows.first().map(|row| row.get(0)))
    }

    async fn list_blobs(&self, prefix: &str, most: usize) -> Result<Vec<String>> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let rows = self.query(LIST, &[&self.options.tenant, &prefix, &most]).await?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    async fn expire_blobs(&self, prefix: &str, age: Duration) -> Result<u64> {
        let params: &crate::Params<'_> = &[&self.options.tenant, &prefix, &seconds(age)];
        Ok(self.query(EXPIRE_BLOBS, params).await?.len() as u64)
    }
}

#[async_trait]
impl Conversations for PostgresStore {
    async fn list_conversations(&self, prefix: &str) -> Result<Vec<(String, u64)>> {
        let rows = self.query(LIST_CONVERSATIONS, &[&self.options.tenant, &prefix]).await?;
        Ok(rows.iter().map(|row| (row.get(0), unsigned(row.get(1)))).collect())
    }

    async fn read_conversation(&self, id: &str, from: u64) -> Result<Vec<Vec<u8>>> {
        let rows = self.query(READ, &[&self.options.tenant, &id, &signed(from)]).await?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    async fn extend_conversation(&self, id: &str, at: u64, lines: &[Vec<u8>]) -> Result<u64> {
        let after = at + lines.len() as u64;
        if lines.is_empty() {
            return Ok(after);
        }
        let bodies: Vec<&[u8]> = lines.iter().map(|line| &**line).collect();
        let sql = if at == 0 { BEGIN } else { EXTEND };
        let params: &crate::Params<'_> = &[&self.options.tenant, &id, &signed(at), &bodies];
        if self.query(sql, params).await?.len() == lines.len() {
            return Ok(after);
        }
        // The call may be a repetition.
        match self.read_conversation(id, at).await?.starts_with(lines) {
            true => Ok(after),
            false => Err(changed_conversation(id, at)),
        }
    }

    async fn expire_conversations(&self, age: Duration) -> Result<u64> {
        let params: &crate::Params<'_> = &[&self.options.tenant, &seconds(age)];
        let rows = self.query(EXPIRE_CONVERSATIONS, params).await?;
        Ok(rows.first().map_or(0, |row| unsigned(row.get(0))))
    }
}
