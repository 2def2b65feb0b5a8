-- What makes the log evidence. Blocks are closed ranges of positions, hashed, that never
-- change again; ledger_head says how far the log is settled. Whoever gets the head's row
-- closes the next block.

-- In order of position: for whoever closes blocks, reads the sealed log or proves.
create index events_position_order on waybill.events (position);

create table waybill.blocks (
    number    bigint primary key check (number >= 0),
    first     bigint not null,
    last      bigint not null check (last >= first),
    count     integer not null check (count between 0 and last - first + 1),
    root      bytea not null check (length(root) = 32),
    nodes     bytea not null, -- the hashes that this block completes in the tree of blocks: level 0, 1, …
    sealed_at timestamptz not null default clock_timestamp()
);
create unique index blocks_last on waybill.blocks (last);

create table waybill.ledger_head (
    one       boolean primary key default true check (one),
    ledger    uuid not null default gen_random_uuid(), -- tells this ledger from every other
    epoch     integer not null default 1, -- counts the older states that were accepted in place of a newer
    blocks    bigint not null default 0,
    last      bigint not null default 0, -- the horizon: every position up to it is settled
    sealed_at timestamptz
);
insert into waybill.ledger_head default values;

-- What is left of archived events, so that the blocks they are in still verify.
create table waybill.archived_leaves (
    position bigint primary key,
    hash     bytea not null check (length(hash) = 32)
);

call waybill.protect('waybill.blocks');
call waybill.protect('waybill.archived_leaves');

-- Blocks neither overlap nor leave anything out nor fork, whoever inserts them.
create function waybill.check_block() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    previous bigint := 0;
begin
    if new.number > 0 then
        select b.last into previous from waybill.blocks b where b.number = new.number - 1;
    end if;
    if previous is null or new.first <> previous + 1 then
        raise exception 'waybill: block % from % does not follow the one before', new.number, new.first
            using errcode = 'restrict_violation';
    end if;
    return new;
end $$;
create trigger follows before insert on waybill.blocks for each row execute function waybill.check_block();
alter table waybill.blocks enable always trigger follows;

-- Takes a ledger that was restored to an older state as it is: a new epoch begins, and its
-- positions beyond any that were given out before. It never moves a position back.
create function waybill.accept_restore(beyond bigint, above integer) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    begun integer;
begin
    update waybill.ledger_head set epoch = greatest(epoch, above) + 1 returning epoch into begun;
    perform setval('waybill.events_position', greatest(beyond, (select last_value from waybill.events_position)));
    return begun;
end $$;
revoke all on function waybill.accept_restore(bigint, integer) from public;
