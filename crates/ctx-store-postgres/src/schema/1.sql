create schema if not exists ctx;

create table ctx.schema_version (
    version int primary key,
    at timestamptz not null default now()
);

-- Who may write a session, until when. The epoch grows with each grant.
create table ctx.lease (
    tenant text not null,
    agent text not null,
    key text not null,
    epoch bigint not null,
    holder text,
    held_until timestamptz not null,
    wanted_until timestamptz,
    primary key (tenant, agent, key)
);

-- The entries of sessions: rows of sessions.json.
create table ctx.session (
    tenant text not null,
    agent text not null,
    key text not null,
    version bigint not null,
    entry text not null,
    primary key (tenant, agent, key)
);

-- The ends of logs.
create table ctx.log (
    tenant text not null,
    agent text not null,
    file text not null,
    generation bigint not null,
    lines bigint not null,
    primary key (tenant, agent, file)
);

-- The lines of logs, each with the epoch of the lease that it was written under.
create table ctx.line (
    tenant text not null,
    agent text not null,
    file text not null,
    seq bigint not null,
    id text not null,
    epoch bigint not null,
    body bytea not null,
    primary key (tenant, agent, file, seq),
    unique (tenant, agent, file, id)
);

-- The last number of each kind of records.
create table ctx.stream (
    tenant text not null,
    agent text not null,
    kind text not null,
    last bigint not null,
    primary key (tenant, agent, kind)
);

-- What agents remember. A record without a body was forgotten.
create table ctx.record (
    tenant text not null,
    agent text not null,
    kind text not null,
    id text not null,
    seq bigint not null,
    body bytea,
    primary key (tenant, agent, kind, id),
    unique (tenant, agent, kind, seq)
);

do $$
declare
    name text;
begin
    foreach name in array array['lease', 'session', 'log', 'line', 'stream', 'record'] loop
        execute format('alter table ctx.%I enable row level security', name);
        execute format('alter table ctx.%I force row level security', name);
        execute format(
            'create policy tenant on ctx.%I using (tenant = current_setting(''ctx.tenant''))', name);
    end loop;
    if not exists (select from pg_roles where rolname = 'ctx_app') then
        create role ctx_app nologin;
    end if;
end
$$;

grant usage on schema ctx to ctx_app;
grant select on ctx.schema_version to ctx_app;
grant select, insert, update, delete on
    ctx.lease, ctx.session, ctx.log, ctx.line, ctx.stream, ctx.record
    to ctx_app;
