-- The log: append-only for everyone, the owner included. Roots are partitioned by
-- stream kind, deliveries again by month of their time-ordered UUIDv7 id, so that a
-- stream never spans partitions and the sequence constraint holds over all of them.

create type waybill.stream_kind as enum ('delivery', 'endpoint', 'admin');

-- CACHE must stay 1: a session that hoarded positions would hand out old ones late.
create sequence waybill.events_position as bigint cache 1;

create table waybill.events (
    tenant       text not null,
    stream       waybill.stream_kind not null,
    stream_id    uuid not null,
    seq          integer not null check (seq > 0),
    position     bigint not null default nextval('waybill.events_position'),
    name         text not null,
    version      integer not null,
    recorded_at  timestamptz not null,
    actor        text not null,
    endpoint_id  uuid,
    trace_parent text,
    data         json not null,
    hash         bytea not null,
    primary key (stream, stream_id, seq)
) partition by list (stream);

-- Says no to every statement that would change history, also to one that finds no row.
create function waybill.refuse_change() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    raise exception 'waybill: the log is append-only; % on %.% is refused', tg_op, tg_table_schema, tg_table_name
        using errcode = 'restrict_violation';
end $$;

-- Statement triggers fire only for the table that a statement names, so the root and
-- every partition have their own; ALWAYS also under session_replication_role = replica.
create procedure waybill.protect(tbl regclass)
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    execute format('create trigger append_only before update or delete or truncate on %s
        for each statement execute function waybill.refuse_change()', tbl);
    execute format('alter table %s enable always trigger append_only', tbl);
end $$;

create table waybill.events_delivery partition of waybill.events
    for values in ('delivery') partition by range (stream_id);
create table waybill.events_endpoint partition of waybill.events for values in ('endpoint');
create table waybill.events_admin partition of waybill.events for values in ('admin');

call waybill.protect('waybill.events');
call waybill.protect('waybill.events_delivery');
call waybill.protect('waybill.events_endpoint');
call waybill.protect('waybill.events_admin');

-- The lowest UUIDv7 of a moment: its milliseconds since 1970, then zeros.
create function waybill.uuid_floor(at timestamptz) returns uuid
language sql immutable parallel safe strict
return (lpad(to_hex(floor(extract(epoch from at) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid;

-- Makes the partition of one month (UTC) where it is missing: create, protect, attach.
-- Attaching takes no lock that an append would wait for. A month that was archived, or is
-- about to be, gets none.
create function waybill.make_partition(month date) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    first timestamptz := date_trunc('month', month::timestamp) at time zone 'UTC';
    past  timestamptz := (date_trunc('month', month::timestamp) + interval '1 month') at time zone 'UTC';
    part  text := format('events_delivery_%s', to_char(first at time zone 'UTC', 'YYYY_MM'));
begin
    perform pg_advisory_xact_lock(hashtextextended('waybill.make_partition', 0));
    if to_regclass(format('waybill.%I', part)) is not null
        or exists (select from waybill.archives a where a.low = waybill.uuid_floor(first)) then
        return false;
    end if;
    execute format('create table waybill.%I (like waybill.events_delivery including all)', part);
    execute format('call waybill.protect(%L)', format('waybill.%I', part));
    execute format('alter table waybill.events_delivery attach partition waybill.%I for values from (%L) to (%L)',
        part, waybill.uuid_floor(first), waybill.uuid_floor(past));
    return true;
end $$;

-- Makes the partitions of last month (ids drawn around the border), this one, and as
-- many ahead as asked, at most 24. Returns how many it made.
create function waybill.make_partitions(ahead integer) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    made integer := 0;
begin
    for i in -1 .. least(greatest(ahead, 0), 24) loop
        if waybill.make_partition((date_trunc('month', now() at time zone 'UTC') + make_interval(months => i))::date) then
            made := made + 1;
        end if;
    end loop;
    return made;
end $$;

revoke all on function waybill.make_partition(date), waybill.make_partitions(integer) from public;
revoke all on procedure waybill.protect(regclass) from public;
