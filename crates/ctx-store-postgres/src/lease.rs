//! Leases: one row for each session.

use std::collections::HashMap;
use std::time::Duration;

use async_trait::async_trait;
use ctx_core::Result;
use ctx_store::{Acquired, Lease, Leases, Renewal, SessionName};

use crate::{PostgresStore, seconds, signed, unsigned};

/// Grants a lease that is free, or held by the same host. The first epoch is a time, so that epochs
/// do not repeat after the rows of a tenant were erased.
const GRANT: &str = "
    insert into ctx.lease as held (tenant, agent, key, epoch, holder, held_until)
    values ($1, $2, $3, (extract(epoch from clock_timestamp()) * 1000000)::bigint, $4,
        clock_timestamp() + make_interval(secs => $5))
    on conflict (tenant, agent, key) do update
        set epoch = held.epoch + 1, holder = $4, wanted_until = null,
            held_until = clock_timestamp() + make_interval(secs => $5)
        where held.held_until <= clock_timestamp() or held.holder = $4
    returning epoch";

/// Asks the holder of a lease to hand it over.
const ASK: &str = "
    update ctx.lease set wanted_until = clock_timestamp() + make_interval(secs => $4)
    where tenant = $1 and agent = $2 and key = $3
    returning coalesce(holder, ''),
        greatest(extract(epoch from held_until - clock_timestamp())::float8, 0)";

const RENEW: &str = "
    update ctx.lease as held set held_until = clock_timestamp() + make_interval(secs => own.ttl)
    from unnest($2::text[], $3::text[], $4::bigint[], $5::float8[]) as own (agent, key, epoch, ttl)
    where held.tenant = $1 and held.agent = own.agent and held.key = own.key
        and held.epoch = own.epoch and held.holder is not null
    returning held.agent, held.key, held.epoch,
        coalesce(held.wanted_until > clock_timestamp(), false)";

const RELEASE: &str = "
    update ctx.lease set holder = null, held_until = clock_timestamp(), wanted_until = null
    where tenant = $1 and agent = $2 and key = $3 and epoch = $4";

#[async_trait]
impl Leases for PostgresStore {
    async fn acquire(
        &self,
        session: &SessionName,
        holder: &str,
        ttl: Duration,
    ) -> Result<Acquired> {
        let (tenant, SessionName { agent, key }) = (&self.options.tenant, session);
        let ttl_seconds = seconds(ttl);
        loop {
            let granted = self.query(GRANT, &[tenant, agent, key, &holder, &ttl_seconds]).await?;
            if let Some(row) = granted.first() {
                return Ok(Acquired::Granted(Lease {
                    session: session.clone(),
                    holder: holder.to_owned(),
                    epoch: unsigned(row.get(0)),
                    ttl,
                }));
            }
            let asked = self.query(ASK, &[tenant, agent, key, &ttl_seconds]).await?;
            if let Some(row) = asked.first() {
                let by: String = row.get(0);
                let remaining = Duration::try_from_secs_f64(row.get(1)).unwrap_or_default();
                if !by.is_empty() && !remaining.is_zero() {
                    return Ok(Acquired::Held { by, remaining });
                }
            }
            // It became free in between.
        }
    }

    async fn renew(&self, leases: &[Lease]) -> Result<Vec<Renewal>> {
        let agents: Vec<&str> = leases.iter().map(|lease| &*lease.session.agent).collect();
        let keys: Vec<&str> = leases.iter().map(|lease| &*lease.session.key).collect();
        let epochs: Vec<i64> = leases.iter().map(|lease| signed(lease.epoch)).collect();
        let ttls: Vec<f64> = leases.iter().map(|lease| seconds(lease.ttl)).collect();
        let tenant = &self.options.tenant;
        let rows = self.query(RENEW, &[tenant, &agents, &keys, &epochs, &ttls]).await?;
        let kept: HashMap<(String, String, i64), bool> =
            rows.iter().map(|row| ((row.get(0), row.get(1), row.get(2)), row.get(3))).collect();
        let answer = |lease: &Lease| {
            let SessionName { agent, key } = lease.session.clone();
            let kept = kept.get(&(agent, key, signed(lease.epoch)));
            kept.map_or(Renewal::Lost, |&is_wanted| Renewal::Kept { is_wanted })
        };
        Ok(leases.iter().map(answer).collect())
    }

    async fn release(&self, lease: &Lease) -> Result<()> {
        let SessionName { agent, key } = &lease.session;
        let epoch = signed(lease.epoch);
        self.query(RELEASE, &[&self.options.tenant, agent, key, &epoch]).await.map(drop)
    }
}
