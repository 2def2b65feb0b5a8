-- What stands beside the log: inline projections of it, and the bytes and secrets
-- that must never enter it.

create table waybill.tenants (
    name       text primary key,
    id         uuid not null unique,
    created_at timestamptz not null
);

-- The heads of the administrative streams, one a tenant; appending locks the row.
create table waybill.admin_heads (
    tenant    text primary key,
    stream_id uuid not null unique,
    version   integer not null,
    head_hash bytea,
    last_at   timestamptz -- of the last record
);

create table waybill.api_keys (
    id         uuid primary key,
    tenant     text not null,
    name       text not null,
    digest     bytea not null unique,
    scopes     text[] not null,
    rate       text, -- of submissions; null: no limit
    created_at timestamptz not null,
    revoked_at timestamptz
);
create index api_keys_tenant on waybill.api_keys (tenant, id);

-- The inline projection of endpoint streams.
create table waybill.endpoints (
    id              uuid primary key,
    tenant          text not null,
    url             text not null,
    url_fingerprint bytea not null,
    description     text not null,
    mode            text not null,
    event_types     text[] not null,
    policy          json not null,
    submit_rate     text generated always as (policy ->> 'submit_rate') stored,
    max_in_flight   integer generated always as ((policy ->> 'max_in_flight')::integer) stored,
    status          text not null,
    version         integer not null,
    head_hash       bytea not null,
    created_at      timestamptz not null,
    updated_at      timestamptz not null
);
create index endpoints_tenant on waybill.endpoints (tenant, id);

-- Everything of an endpoint that is needed to send and must not be in the log, in one
-- sealed piece, so that URL, headers and signing secrets are never read apart.
create table waybill.endpoint_secrets (
    endpoint_id uuid primary key,
    version     integer not null,
    sealed      bytea not null
);

create table waybill.messages (
    id           uuid primary key,
    tenant       text not null,
    event_type   text not null,
    content_type text not null,
    payload      bytea,
    salt         bytea,
    commitment   bytea not null,
    trace_parent text,
    delivery_ids uuid[] not null,
    created_at   timestamptz not null,
    erased_at    timestamptz
);
alter table waybill.messages alter column payload set storage external;

-- A message's bytes never change: they can only be erased.
create function waybill.refuse_rewriting() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    raise exception 'waybill: the bytes of a message can be erased, not changed' using errcode = 'insufficient_privilege';
end $$;
create trigger erase_only before update on waybill.messages for each row
    when (new.payload is not null or new.salt is not null) execute function waybill.refuse_rewriting();

-- The inline projection of delivery streams, and the queue that workers claim from.
-- What a result changes is in no index, so recording it is a heap-only update.
create table waybill.deliveries (
    id               uuid primary key,
    tenant           text not null,
    endpoint_id      uuid not null,
    message_id       uuid not null,
    event_type       text not null,
    idempotency_key  text,
    ordering_key     text,
    state            text not null,
    version          integer not null,
    attempts         integer not null,
    cycle            integer not null,
    cycle_attempts   integer not null,
    due_at           timestamptz,
    claim_token      uuid,
    failure_reason   text,
    last_outcome     text,
    last_attempt     integer not null,
    unknown_attempts integer not null,
    proof            integer not null,
    forced_after     integer not null,
    held_by          uuid,
    payload_erased   boolean not null,
    created_at       timestamptz not null,
    updated_at       timestamptz not null,
    head_hash        bytea not null
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
create index deliveries_due on waybill.deliveries (endpoint_id, due_at) where due_at is not null;
create index deliveries_tenant on waybill.deliveries (tenant, id);

-- A claim is a row, one for a batch: the lease stands here and not in the delivery.
create table waybill.claims (
    token        uuid primary key,
    worker       text not null,
    lease_until  timestamptz not null,
    delivery_ids uuid[] not null
) with (autovacuum_vacuum_scale_factor = 0.02);

-- Scope is the endpoint's id, or the tenant's for a fan-out.
create table waybill.idempotency_keys (
    scope       uuid not null,
    key         text not null,
    tenant      text not null,
    message_id  uuid not null,
    fingerprint bytea not null,
    created_at  timestamptz not null,
    primary key (scope, key)
);

-- Bounded excerpts of what receivers answered: bytes from outside, salted. Null once
-- erased.
create table waybill.exchanges (
    delivery_id uuid not null,
    attempt     integer not null,
    salt        bytea,
    excerpt     bytea,
    location    bytea,
    detail      bytea,
    primary key (delivery_id, attempt)
);

-- Erases the bytes and the salts of messages, and of what receivers answered to deliveries.
-- The application can do no more to them than this: not change them.
create function waybill.erase(messages uuid[], deliveries uuid[], at timestamptz) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    update waybill.messages m set payload = null, salt = null, erased_at = at where m.id = any (messages);
    update waybill.exchanges x set salt = null, excerpt = null, location = null, detail = null
    where x.delivery_id = any (deliveries);
end $$;
revoke all on function waybill.erase(uuid[], uuid[], timestamptz) from public;

-- How much of each budget is spent in its present window. Not logged: a crash of the
-- database may begin a window anew, and no submission waits for this to reach the disk.
create unlogged table waybill.rate_limit_counters (
    subject      uuid primary key, -- an API key's or an endpoint's id
    window_start timestamptz not null,
    most         bigint not null,
    wanted       bigint not null,
    granted      bigint not null,
    used         bigint not null
) with (fillfactor = 50);

-- Who is alive: caps that hold for all workers together are divided among these.
create table waybill.workers (
    id         uuid primary key,
    name       text not null,
    started_at timestamptz not null,
    seen_at    timestamptz not null
);

insert into waybill.tenants (name, id, created_at)
values ('default', gen_random_uuid(), now()), ('system', gen_random_uuid(), now());
insert into waybill.admin_heads (tenant, stream_id, version)
select name, id, 0 from waybill.tenants;
