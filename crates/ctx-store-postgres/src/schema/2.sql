-- Hosts: how long each one holds its leases. A lease is in force while its row names the holder and
-- the epoch; when `held_until` of its holder has passed, or the holder has no row, it can be taken
-- over. So one renewed row keeps all leases of a host. The term grows when a host comes back after
-- that time, and does not repeat: the host then looks at all its leases.
--
-- Programs of schema 1 cannot write any more: their statements name a column that is gone. Their
-- leases have holders without a row, so they can be taken over at once.
create table ctx.host (
    tenant text not null,
    holder text not null,
    term bigint not null,
    held_until timestamptz not null,
    primary key (tenant, holder)
) with (fillfactor = 50);

alter table ctx.lease drop column held_until;

-- The leases of a holder that others wait for.
create index lease_wanted on ctx.lease (tenant, holder) where wanted_until is not null;

-- Notifications: they carry hashes with this key, so that they say nothing to those who may listen
-- but not read the tables. The key of version 1 is used.
alter table ctx.schema_version add column key uuid not null default gen_random_uuid();

-- What the replicas of a proxy share. Names are compared by their bytes, so that an index finds
-- those with a prefix.
create table ctx.conversation (
    tenant text not null,
    id text collate "C" not null,
    lines bigint not null,
    changed_at timestamptz not null default now(),
    primary key (tenant, id)
);

create table ctx.conversation_line (
    tenant text not null,
    id text collate "C" not null,
    seq bigint not null,
    body bytea not null,
    primary key (tenant, id, seq)
);

create table ctx.blob (
    tenant text not null,
    name text collate "C" not null,
    body bytea not null,
    changed_at timestamptz not null default now(),
    primary key (tenant, name)
);

-- Erasure: when a log was last replaced or removed, and when a record last changed. What was
-- erased leaves a row for hosts that do not know yet; `ctx store vacuum` deletes old ones.
alter table ctx.log add column changed_at timestamptz not null default now();
alter table ctx.record add column changed_at timestamptz not null default now();

do $$
declare
    name text;
begin
    foreach name in array array['host', 'conversation', 'conversation_line', 'blob'] loop
        execute format('alter table ctx.%I enable row level security', name);
        execute format('alter table ctx.%I force row level security', name);
        execute format(
            'create policy tenant on ctx.%I using (tenant = current_setting(''ctx.tenant''))', name);
        execute format('grant select, insert, update, delete on ctx.%I to ctx_app', name);
    end loop;
end
$$;
