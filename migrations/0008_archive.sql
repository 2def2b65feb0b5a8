-- Whole months of settled deliveries leave the ledger for files. What is left of their
-- events are positions and hashes, in archived_leaves.

-- How far the archiving of a month has come; it goes on from there, whatever ended it.
create table waybill.archives (
    month      date primary key, -- its first day, in UTC
    low        uuid not null,    -- the lowest delivery id of the month
    high       uuid not null,    -- and that of the next
    stage      text not null check (stage in ('closed', 'exported', 'kept', 'cleared', 'detached', 'dropped')),
    file       text,             -- without directories
    sha256     bytea,
    events     bigint,
    deliveries bigint,
    first_position bigint,
    last_position  bigint,
    reason     text not null,
    actor      text not null,
    began_at   timestamptz not null default clock_timestamp(),
    ended_at   timestamptz
);
create unique index archives_low on waybill.archives (low);

-- Says no to every event of a month that is being archived or has been.
create function waybill.refuse_archived() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    raise exception 'waybill: the month of % % is archived', new.stream, new.stream_id using errcode = 'WB410';
end $$;

-- Closes a month: from the commit on nothing is added to its partition, and what was being
-- added when it asked has ended. It waits for a lock on that partition alone.
create procedure waybill.close_month(part text)
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    execute format('create trigger archived before insert on waybill.%I
        for each row execute function waybill.refuse_archived()', part);
    execute format('alter table waybill.%I enable always trigger archived', part);
end $$;

-- Opens a closed month again.
create procedure waybill.open_month(part text)
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    execute format('drop trigger if exists archived on waybill.%I', part);
end $$;

-- Gives a detached partition the name under which it waits to be dropped.
create procedure waybill.set_aside_month(part text)
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    if to_regclass(format('waybill.%I', part)) is not null then
        execute format('alter table waybill.%I rename to %I', part, 'archived_' || part);
    end if;
end $$;

-- Drops a partition that was set aside.
create procedure waybill.drop_month(part text)
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    execute format('drop table if exists waybill.%I', 'archived_' || part);
end $$;
revoke all on procedure waybill.close_month(text), waybill.open_month(text), waybill.set_aside_month(text),
    waybill.drop_month(text) from public;
