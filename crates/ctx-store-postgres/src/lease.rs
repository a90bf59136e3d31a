//! Leases: one row for each session, and one for each host, which is renewed.
//!
//! A lease is in force while its row has its epoch and a holder. Another host takes it over when the
//! time of the holder's row has passed. A takeover locks that row against the holder's renewal, so
//! one of them comes first: a host whose renewal finds that its time had passed looks at all its
//! leases, and the others it knows to have kept. The term of the row says so, also to a renewal that
//! is repeated because its answer was lost.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

use async_trait::async_trait;
use ctx_core::Result;
use ctx_store::{Acquired, Change, Lease, Leases, Renewal, SessionName};
use tokio::time::Instant;
use tokio_postgres::Row;

use crate::{FIRST_WAIT, PostgresStore, locked, seconds, signed, unsigned};

/// How long a request for a session is remembered, at least: longer than a host waits before it asks
/// again.
const WANTED: Duration = Duration::from_secs(3);

/// The number of the first grant, or term. A time, so that numbers do not repeat after rows were
/// removed.
macro_rules! first {
    () => {
        "(extract(epoch from clock_timestamp()) * 1000000)::bigint"
    };
}

/// Grants a lease that is free, or held by the same host. The host's row is extended only if a third
/// of its time has passed and no other transaction does so: the grants of a host do not wait for each
/// other, nor for a commit that waits for a standby.
const GRANT: &str = concat!(
    "with stale as materialized (
        select from ctx.host where tenant = $1 and holder = $4
            and held_until <= clock_timestamp() + make_interval(secs => $5::float8 * 2 / 3)
        for update skip locked
    ), extended as (
        update ctx.host set term = term + (held_until <= clock_timestamp())::int,
            held_until = clock_timestamp() + make_interval(secs => $5)
        where tenant = $1 and holder = $4 and exists (select from stale)
        returning 1
    ), added as (
        insert into ctx.host (tenant, holder, term, held_until)
        select $1, $4, ",
    first!(),
    ", clock_timestamp() + make_interval(secs => $5)
        where not exists (select from ctx.host where tenant = $1 and holder = $4)
        on conflict do nothing returning 1
    ), done as (
        select from (select count(*) from extended) as one, (select count(*) from added) as other
    )
    insert into ctx.lease as held (tenant, agent, key, epoch, holder)
    select $1, $2, $3, ",
    first!(),
    ", $4 from done
    on conflict (tenant, agent, key) do update
        set epoch = held.epoch + 1, holder = $4, wanted_until = null
        where held.holder is null or held.holder = $4
    returning epoch"
);

/// Returns the holder of a lease, and for how long its row is valid. If it is, the holder is asked to
/// hand the session over, unless that was done just now.
const ASK: &str = "
    with seen as (
        select lease.epoch, lease.holder, host.holder is not null as has_row,
            greatest(extract(epoch from host.held_until - clock_timestamp())::float8, 0) as seconds
        from ctx.lease left join ctx.host on host.tenant = $1 and host.holder = lease.holder
        where lease.tenant = $1 and agent = $2 and key = $3 and lease.holder is not null
    ), asked as (
        update ctx.lease set wanted_until = clock_timestamp() + make_interval(secs => $4)
        from seen
        where tenant = $1 and agent = $2 and key = $3 and lease.epoch = seen.epoch
            and lease.holder is not null and seconds > 0 and (wanted_until is null
                or wanted_until < clock_timestamp() + make_interval(secs => $4::float8 / 2))
        returning 1
    )
    select epoch, holder, has_row, coalesce(seconds, 0), (select count(*) from asked) from seen";

/// Gives a row to a holder whose row was removed, so that it can be locked.
const ADD_ROW: &str = concat!(
    "insert into ctx.host (tenant, holder, term, held_until) values ($1, $2, ",
    first!(),
    ", clock_timestamp()) on conflict do nothing"
);

/// Grants a lease whose holder's time has passed. The lock makes a renewal of the holder wait. If one
/// is on its way, nothing is granted.
const TAKE_OVER: &str = "
    with passed as materialized (
        select from ctx.host where tenant = $1 and holder = $5
            and held_until <= clock_timestamp() for share skip locked
    )
    update ctx.lease set epoch = epoch + 1, holder = $4, wanted_until = null
    where tenant = $1 and agent = $2 and key = $3 and holder = $5 and epoch = $6
        and exists (select from passed)
    returning epoch";

/// Renews a host's row, and returns its term and the leases that others wait for.
const RENEW: &str = concat!(
    "with renewed as (
        insert into ctx.host as known (tenant, holder, term, held_until)
        values ($1, $2, ",
    first!(),
    ", clock_timestamp() + make_interval(secs => $3))
        on conflict (tenant, holder) do update set
            term = known.term + (known.held_until <= clock_timestamp())::int,
            held_until = clock_timestamp() + make_interval(secs => $3)
        returning term
    )
    select term, agent, key, epoch from renewed left join ctx.lease
        on tenant = $1 and holder = $2 and wanted_until > clock_timestamp()"
);

/// Those of these leases that are in force.
const IN_FORCE: &str = "
    select held.agent, held.key, held.epoch
    from unnest($3::text[], $4::text[], $5::bigint[]) as own (agent, key, epoch)
    join ctx.lease as held on held.tenant = $1 and held.holder = $2
        and held.agent = own.agent and held.key = own.key and held.epoch = own.epoch";

/// Gives a lease back, and returns whether another host waits for it.
const RELEASE: &str = "
    with held as materialized (
        select coalesce(wanted_until > clock_timestamp(), false) as is_wanted from ctx.lease
        where tenant = $1 and agent = $2 and key = $3 and epoch = $4 and holder is not null
        for update
    )
    update ctx.lease set holder = null, wanted_until = null from held
    where tenant = $1 and agent = $2 and key = $3 and epoch = $4
    returning is_wanted";

/// A lease: its session and its epoch.
type Grant = (SessionName, u64);

/// What a holder knew of its leases after its last renewal.
#[derive(Default)]
pub(crate) struct Known {
    term: i64,
    /// Those that were in force in this term.
    kept: HashSet<Grant>,
    /// Those that others wait for and that nothing in this process uses, with the time since when:
    /// the answer to an acquisition was lost, or a lease was dropped without a release.
    unused: HashMap<Grant, Instant>,
}

#[async_trait]
impl Leases for PostgresStore {
    async fn acquire(
        &self,
        session: &SessionName,
        holder: &str,
        ttl: Duration,
    ) -> Result<Acquired> {
        let (tenant, SessionName { agent, key }) = (&self.options.tenant, session);
        let (ttl_seconds, wanted) = (seconds(ttl), seconds(ttl.max(WANTED)));
        let granted = |row: &Row| {
            let (session, holder) = (session.clone(), holder.to_owned());
            Acquired::Granted(Lease { session, holder, epoch: unsigned(row.get(0)), ttl })
        };
        loop {
            let rows = self.query(GRANT, &[tenant, agent, key, &holder, &ttl_seconds]).await?;
            if let Some(row) = rows.first() {
                return Ok(granted(row));
            }
            let rows = self.query(ASK, &[tenant, agent, key, &wanted]).await?;
            // It became free in between.
            let Some(row) = rows.first() else { continue };
            let (epoch, by): (i64, String) = (row.get(0), row.get(1));
            let remaining = Duration::try_from_secs_f64(row.get(3)).unwrap_or_default();
            if !remaining.is_zero() {
                if row.get::<_, i64>(4) > 0 {
                    self.notify(Change::Wanted(&by));
                }
                return Ok(Acquired::Held { by, remaining });
            }
            if !row.get::<_, bool>(2) {
                self.query(ADD_ROW, &[tenant, &by]).await?;
            }
            let rows = self.query(TAKE_OVER, &[tenant, agent, key, &holder, &by, &epoch]).await?;
            return Ok(match rows.first() {
                Some(row) => granted(row),
                // Another host was faster, or the holder comes back.
                None => Acquired::Held { by, remaining: FIRST_WAIT },
            });
        }
    }

    async fn renew(&self, leases: &[Lease]) -> Result<Vec<Renewal>> {
        let Some(Lease { holder, .. }) = leases.first() else { return Ok(Vec::new()) };
        let ttl = leases.iter().map(|lease| lease.ttl).max().unwrap_or_default();
        let tenant = &self.options.tenant;
        let rows = self.query(RENEW, &[tenant, holder, &seconds(ttl)]).await?;
        let term = rows.first().map_or(0, |row| row.get(0));
        let wanted: HashSet<Grant> = rows.iter().filter_map(grant).collect();
        let entry = (tenant.clone(), holder.clone());
        // A renewal at the same time finds nothing here, and looks at all its leases.
        let mut known = locked(&self.shared.leases).remove(&entry).unwrap_or_default();
        if known.term != term {
            known = Known { term, unused: known.unused, ..Known::default() };
        }
        let all: HashSet<Grant> =
            leases.iter().map(|own| (own.session.clone(), own.epoch)).collect();
        known.kept.retain(|own| all.contains(own));
        let new: Vec<&Grant> = all.difference(&known.kept).collect();
        let new = self.in_force(holder, &new).await?;
        known.kept.extend(new);
        known.unused.retain(|own, _| wanted.contains(own) && !all.contains(own));
        for unused in wanted.difference(&all) {
            let since = known.unused.entry(unused.clone()).or_insert_with(Instant::now);
            // An acquisition may be on its way.
            if since.elapsed() * 3 >= ttl {
                self.give_back(&unused.0, unused.1).await?;
            }
        }
        let answer = |lease: &Lease| {
            let own = (lease.session.clone(), lease.epoch);
            match known.kept.contains(&own) {
                true => Renewal::Kept { is_wanted: wanted.contains(&own) },
                false => Renewal::Lost,
            }
        };
        let answers = leases.iter().map(answer).collect();
        locked(&self.shared.leases).insert(entry, known);
        Ok(answers)
    }

    async fn release(&self, lease: &Lease) -> Result<()> {
        let entry = (self.options.tenant.clone(), lease.holder.clone());
        if let Entry::Occupied(mut known) = locked(&self.shared.leases).entry(entry) {
            known.get_mut().kept.remove(&(lease.session.clone(), lease.epoch));
            if known.get().kept.is_empty() {
                known.remove();
            }
        }
        self.give_back(&lease.session, lease.epoch).await
    }
}

impl PostgresStore {
    /// Returns those of these leases that are in force.
    async fn in_force(&self, holder: &str, leases: &[&Grant]) -> Result<Vec<Grant>> {
        if leases.is_empty() {
            return Ok(Vec::new());
        }
        let agents: Vec<&str> = leases.iter().map(|own| &*own.0.agent).collect();
        let keys: Vec<&str> = leases.iter().map(|own| &*own.0.key).collect();
        let epochs: Vec<i64> = leases.iter().map(|own| signed(own.1)).collect();
        let params: &crate::Params<'_> = &[&self.options.tenant, &holder, &agents, &keys, &epochs];
        let rows = self.query(IN_FORCE, params).await?;
        let grant =
            |row: &Row| (SessionName { agent: row.get(0), key: row.get(1) }, unsigned(row.get(2)));
        Ok(rows.iter().map(grant).collect())
    }

    async fn give_back(&self, session: &SessionName, epoch: u64) -> Result<()> {
        let SessionName { agent, key } = session;
        let params: &crate::Params<'_> = &[&self.options.tenant, agent, key, &signed(epoch)];
        let rows = self.query(RELEASE, params).await?;
        if rows.first().is_some_and(|row| row.get(0)) {
            self.notify(Change::Released(session));
        }
        Ok(())
    }
}

/// Returns the lease of a row of [`RENEW`]; `None` if no other host waits.
fn grant(row: &Row) -> Option<Grant> {
    let (agent, key): (Option<String>, Option<String>) = (row.get(1), row.get(2));
    Some((SessionName { agent: agent?, key: key? }, unsigned(row.get(3))))
}
