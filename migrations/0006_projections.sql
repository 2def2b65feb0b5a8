-- What is known of each projection, and what a rebuild does in the catalogue: it makes a
-- shadow table beside the live one, fills it, and swaps the two. The procedures run with
-- their caller's rights, who must own the projection's table.

create table waybill.projection_checkpoints (
    name       text primary key,
    version    integer not null,
    position   bigint, -- up to where it holds the log; null: it moves with each append
    state      text not null default 'running' check (state in ('running', 'stopped')),
    error      text,
    stream     text, -- with stream_id and seq: the event that it stopped at
    stream_id  uuid,
    seq        integer,
    rebuilt_at timestamptz
);
insert into waybill.projection_checkpoints (name, version, position)
values ('deliveries', 1, null), ('endpoints', 1, null), ('endpoint_health', 1, 0), ('outcomes_hourly', 1, 0);

-- How requests to each endpoint went, all in all. An asynchronous projection.
create table waybill.endpoint_health (
    tenant          text not null,
    endpoint_id     uuid not null,
    attempts        bigint not null, -- requests that were reported: the next four
    succeeded       bigint not null,
    refused         bigint not null,
    unreached       bigint not null,
    unknown         bigint not null,
    lost            bigint not null, -- claims that ran out unreported; a late report of one is an attempt as well
    answered        bigint not null, -- attempts with a status: the next three are of these
    duration_sum_ms bigint not null,
    duration_max_ms bigint not null,
    durations       bigint[] not null, -- how many took up to 10, 25, 50, 100, 250, 500 ms, 1, 2.5, 5, 10, 30 s, and longer
    last_attempt_at timestamptz, -- when it was recorded
    last_success_at timestamptz,
    primary key (tenant, endpoint_id)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);

-- What attempts came to, by the hour (UTC) in which they were recorded. An asynchronous
-- projection.
create table waybill.outcomes_hourly (
    tenant      text not null,
    endpoint_id uuid not null,
    hour        timestamptz not null,
    succeeded   bigint not null,
    refused     bigint not null,
    unreached   bigint not null,
    unknown     bigint not null,
    lost        bigint not null,
    primary key (tenant, endpoint_id, hour)
) with (fillfactor = 70);
create index outcomes_hourly_hour on waybill.outcomes_hourly (tenant, hour);

-- What keeps a table from being swapped, each in words: what depends on it and cannot be
-- carried over. Views that the ledger's owner may replace are carried over.
create function waybill.projection_dependents(tbl name) returns setof text
language sql stable set search_path = pg_catalog, pg_temp
begin atomic
    with live as (
      select c.oid from pg_class c where c.oid = to_regclass(format('waybill.%I', tbl))),
    owner as (
      select c.relowner from pg_class c where c.oid = to_regclass('waybill.events'))
    select case v.relkind when 'm' then 'materialized view ' else 'view ' end || v.oid::regclass
    from live
    join pg_depend d on d.refclassid = 'pg_class'::regclass and d.refobjid = live.oid and d.classid = 'pg_rewrite'::regclass
    join pg_rewrite r on r.oid = d.objid
    join pg_class v on v.oid = r.ev_class
    where v.oid <> live.oid and (v.relkind = 'm' or not pg_has_role((select relowner from owner), v.relowner, 'member'))
    group by v.oid, v.relkind
    union all
    select 'foreign key ' || quote_ident(k.conname) || ' of ' || k.conrelid::regclass
    from live join pg_constraint k on k.confrelid = live.oid and k.contype = 'f'
    union all
    select 'policy ' || quote_ident(p.polname) from live join pg_policy p on p.polrelid = live.oid
    union all
    select 'publication ' || quote_ident(b.pubname)
    from live join pg_publication_rel p on p.prrelid = live.oid join pg_publication b on b.oid = p.prpubid
    union all
    select 'child or parent ' || case when i.inhrelid = live.oid then i.inhparent else i.inhrelid end::regclass
    from live join pg_inherits i on live.oid in (i.inhrelid, i.inhparent)
    union all
    select 'function ' || d.objid::regprocedure
    from live join pg_depend d on d.refclassid = 'pg_class'::regclass and d.refobjid = live.oid and d.classid = 'pg_proc'::regclass
    group by d.objid;
end;

-- Drops what a rebuild has left, if anything.
create procedure waybill.drop_shadow(tbl name)
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    execute format('drop table if exists waybill.%I, waybill.%I', tbl || '_shadow', tbl || '_differ');
end $$;

-- Makes an empty shadow with the live table's columns, constraints and storage options,
-- and without indexes; and a table for the keys of rows that differ.
create procedure waybill.make_shadow(tbl name)
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    live   pg_class;
    shadow text := format('waybill.%I', tbl || '_shadow');
    a      record;
begin
    call waybill.drop_shadow(tbl);
    select c.* into strict live from pg_class c where c.oid = format('waybill.%I', tbl)::regclass;
    perform set_config('default_tablespace', coalesce((select spcname from pg_tablespace where oid = live.reltablespace), ''), true);
    execute format('create table %s (like waybill.%I including defaults including constraints including generated
        including identity including storage including compression including comments)%s', shadow, tbl,
        ' with (' || array_to_string(live.reloptions, ', ') || ')');
    for a in select attname, coalesce(attstattarget, -1) as target, attoptions from pg_attribute
             where attrelid = live.oid and attnum > 0 and not attisdropped loop
        if a.target >= 0 then
            execute format('alter table %s alter column %I set statistics %s', shadow, a.attname, a.target);
        end if;
        if a.attoptions is not null then
            execute format('alter table %s alter column %I set (%s)', shadow, a.attname, array_to_string(a.attoptions, ', '));
        end if;
    end loop;
    execute format('create unlogged table waybill.%I (key text primary key, kind text not null, columns text[] not null)', tbl || '_differ');
end $$;

-- Builds the shadow's indexes, constraints and statistics as the live table has them, each
-- under a name made of the live one's oid: either what the table's constraints stand on,
-- which keeps others from the table, or the rest, which lets them read.
create procedure waybill.index_shadow(tbl name, constraints boolean)
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    live   regclass := format('waybill.%I', tbl)::regclass;
    shadow text := format('waybill.%I', tbl || '_shadow');
    i      record;
begin
    for i in select x.indexrelid, x.indisunique, k.oid as owner, pg_get_constraintdef(k.oid) as constraintdef,
                    pg_get_indexdef(x.indexrelid) as def, coalesce(s.spcname, '') as space, c.reloptions
             from pg_index x
             join pg_class c on c.oid = x.indexrelid
             left join pg_tablespace s on s.oid = c.reltablespace
             left join pg_constraint k on k.conindid = x.indexrelid and k.conrelid = live and k.contype in ('p', 'u', 'x')
             where x.indrelid = live and x.indisvalid and (k.oid is not null) = constraints loop
        perform set_config('default_tablespace', i.space, true);
        if i.owner is not null then
            execute format('alter table %s add constraint %I %s', shadow, 'shadow_' || i.indexrelid, i.constraintdef);
        else
            execute format('create %s index %I on %s using %s', case when i.indisunique then 'unique' end,
                'shadow_' || i.indexrelid, shadow, substr(i.def, strpos(i.def, ' USING ') + 7));
        end if;
    end loop;
    if constraints then
        return;
    end if;
    for i in select conname, pg_get_constraintdef(oid) as def from pg_constraint where conrelid = live and contype = 'f' loop
        execute format('alter table %s add constraint %I %s', shadow, i.conname, i.def);
    end loop;
    execute format('analyze %s', shadow);
end $$;

-- The streams of a kind that have records above a position which the shadow does not hold.
-- What it holds is said by its versions, so that a position which nobody can move, as an
-- append is open, makes nothing be folded twice.
create function waybill.moved_streams(tbl name, kind waybill.stream_kind, above bigint) returns setof uuid
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
    return query execute format('select e.stream_id
        from (select stream_id, max(seq) as seq from waybill.events where stream = $1 and position > $2 group by stream_id) e
        left join waybill.%I s on s.id = e.stream_id
        where s.version is distinct from e.seq
        order by e.stream_id', tbl || '_shadow') using kind, above;
end $$;

-- Notes which rows of the live table and of the shadow differ, and in what: of all keys,
-- or anew of those named.
create procedure waybill.compare_shadow(tbl name, ids uuid[])
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    live     regclass := format('waybill.%I', tbl)::regclass;
    narrow   text := '';
    keys     text[];
    joined   text;
    key      text;
    mine     text;
    theirs   text;
    differ   text;
begin
    select array_agg(quote_ident(a.attname) order by a.attnum) into strict keys
    from pg_index x join pg_attribute a on a.attrelid = x.indrelid and a.attnum = any (x.indkey)
    where x.indrelid = live and x.indisprimary;
    select string_agg(format('s.%1$s = l.%1$s', k), ' and '), string_agg(format('coalesce(l.%1$s, s.%1$s)::text', k), ', ')
    into joined, key from unnest(keys) k;
    select string_agg(format('l.%I%s', attname, text), ', '), string_agg(format('s.%I%s', attname, text), ', '),
           string_agg(format('case when l.%1$I%2$s is distinct from s.%1$I%2$s then %1$L end', attname, text), ', ')
    into mine, theirs, differ
    from (select attname, attnum, case when atttypid = 'json'::regtype then '::text' else '' end as text from pg_attribute
          where attrelid = live and attnum > 0 and not attisdropped and attgenerated = '' order by attnum) c;
    if ids is not null then
        execute format('delete from waybill.%I where key = any ($1::text[])', tbl || '_differ') using ids;
        narrow := format('where %s = any ($1)', keys[1]);
    else
        execute format('truncate waybill.%I', tbl || '_differ');
    end if;
    execute format('insert into waybill.%1$I (key, kind, columns)
        select concat_ws(%2$L, %3$s),
               case when l.%4$s is null then %5$L when s.%4$s is null then %6$L else %7$L end,
               case when l.%4$s is null or s.%4$s is null then %8$L::text[] else array_remove(array[%9$s], null) end
        from (select t.* from waybill.%10$I t %11$s) l
        full join (select t.* from waybill.%12$I t %11$s) s on %13$s
        where l.%4$s is null or s.%4$s is null or row(%14$s) is distinct from row(%15$s)',
        tbl || '_differ', '/', key, keys[1], 'missing', 'extra', 'changed', '{}', differ, tbl, narrow, tbl || '_shadow', joined,
        mine, theirs) using ids;
end $$;

-- Takes out of the shadow of deliveries what is being archived: rows of such a month that
-- the live table has no more, though the log may still hold their events. Returns how many.
create function waybill.leave_archived() returns bigint
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    a record;
    n bigint;
    total bigint := 0;
begin
    for a in select low, high from waybill.archives where stage in ('kept', 'cleared', 'detached', 'dropped') loop
        delete from waybill.deliveries_shadow s
        where s.id >= a.low and s.id < a.high and not exists (select from waybill.deliveries d where d.id = s.id);
        get diagnostics n = row_count;
        total := total + n;
        delete from waybill.deliveries_differ d where d.kind = 'missing' and d.key::uuid >= a.low and d.key::uuid < a.high;
    end loop;
    return total;
end $$;

-- Gives the views over the table that is being replaced the one that replaces it. They
-- stay what they are, owner, grants and options included; only their table changes.
create procedure waybill.repoint_views(tbl name)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    replaced text := tbl || '_replaced';
    v        record;
begin
    for v in select distinct c.oid::regclass as name, c.reloptions, pg_get_viewdef(c.oid) as def
             from pg_depend d
             join pg_rewrite r on r.oid = d.objid
             join pg_class c on c.oid = r.ev_class
             where d.refclassid = 'pg_class'::regclass and d.refobjid = to_regclass(format('waybill.%I', replaced))
               and d.classid = 'pg_rewrite'::regclass and c.relkind = 'v' loop
        execute format('create or replace view %s%s as %s', v.name,
            ' with (' || array_to_string(v.reloptions, ', ') || ')', replace(v.def, replaced, tbl));
    end loop;
end $$;
revoke all on procedure waybill.repoint_views(name) from public;

-- Grants on the shadow what is granted on the live table, and nothing else.
create procedure waybill.grant_shadow(tbl name)
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    live   pg_class;
    other  pg_class;
    shadow text := format('waybill.%I', tbl || '_shadow');
    g      record;
begin
    select c.* into strict live from pg_class c where c.oid = format('waybill.%I', tbl)::regclass;
    select c.* into strict other from pg_class c where c.oid = shadow::regclass;
    for g in select distinct grantee from aclexplode(coalesce(other.relacl, acldefault('r', other.relowner))) loop
        execute format('revoke all on %s from %s', shadow, case g.grantee when 0 then 'public' else g.grantee::regrole::text end);
    end loop;
    for g in select null as col, x.grantee, x.privilege_type, x.is_grantable
             from aclexplode(coalesce(live.relacl, acldefault('r', live.relowner))) x
             union all
             select format('(%I)', a.attname), x.grantee, x.privilege_type, x.is_grantable
             from pg_attribute a, aclexplode(a.attacl) x where a.attrelid = live.oid and a.attacl is not null loop
        execute format('grant %s %s on %s to %s%s', g.privilege_type, g.col, shadow,
            case g.grantee when 0 then 'public' else g.grantee::regrole::text end,
            case when g.is_grantable then ' with grant option' end);
    end loop;
end $$;

-- Puts the shadow in the live table's place, under the names and with the triggers,
-- grants, comment and replica identity of that one, which it drops. The caller has locked
-- the live table.
create procedure waybill.swap_shadow(tbl name)
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    live     pg_class;
    remark   text;
    identity text;
    names    text[];
    triggers text[];
    one      text;
begin
    call waybill.grant_shadow(tbl);
    select c.* into strict live from pg_class c where c.oid = format('waybill.%I', tbl)::regclass;
    remark := obj_description(live.oid, 'pg_class');
    select array_agg(case when k.oid is null
               then format('alter index waybill.%I rename to %I', 'shadow_' || x.indexrelid, c.relname)
               else format('alter table waybill.%I rename constraint %I to %I', tbl, 'shadow_' || x.indexrelid, k.conname) end),
           max(format('using index %I', c.relname)) filter (where x.indisreplident)
    into names, identity
    from pg_index x
    join pg_class c on c.oid = x.indexrelid
    left join pg_constraint k on k.conindid = x.indexrelid and k.conrelid = live.oid and k.contype in ('p', 'u', 'x')
    where x.indrelid = live.oid and x.indisvalid;
    select array_agg(s order by tgname, n) into triggers
    from pg_trigger t, unnest(array[pg_get_triggerdef(t.oid), case t.tgenabled
        when 'A' then format('alter table waybill.%I enable always trigger %I', tbl, t.tgname)
        when 'R' then format('alter table waybill.%I enable replica trigger %I', tbl, t.tgname)
        when 'D' then format('alter table waybill.%I disable trigger %I', tbl, t.tgname) end]) with ordinality u (s, n)
    where t.tgrelid = live.oid and not t.tgisinternal and s is not null;
    execute format('alter table waybill.%I rename to %I', tbl, tbl || '_replaced');
    execute format('alter table waybill.%I rename to %I', tbl || '_shadow', tbl);
    call waybill.repoint_views(tbl);
    execute format('drop table waybill.%I', tbl || '_replaced');
    foreach one in array names || triggers loop
        execute one;
    end loop;
    execute format('comment on table waybill.%I is %L', tbl, remark);
    if live.relreplident <> 'd' then
        execute format('alter table waybill.%I replica identity %s', tbl,
            case live.relreplident when 'f' then 'full' when 'n' then 'nothing' else identity end);
    end if;
end $$;

-- Makes a role the owner of the projections, who may rebuild them: it reads the log and
-- cannot add to it. Whoever calls must be able to act as that role.
create procedure waybill.grant_projections(keeper name)
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    tbl text;
begin
    execute format('grant usage, create on schema waybill to %I', keeper);
    execute format('grant select on waybill.events, waybill.ledger_head, waybill.archives, waybill.events_position to %I', keeper);
    execute format('grant execute on procedure waybill.repoint_views(name) to %I', keeper);
    foreach tbl in array (select array_agg(name) from waybill.projection_checkpoints) || 'projection_checkpoints'::text loop
        execute format('alter table waybill.%I owner to %I', tbl, keeper);
        execute format('grant select on waybill.%I to %I', tbl, current_user);
    end loop;
end $$;
revoke all on procedure waybill.grant_projections(name) from public;
