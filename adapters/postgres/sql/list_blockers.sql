-- Who holds a lock on a projection's table that a swap would wait for, the oldest first.
select distinct coalesce(l.pid, 0), coalesce(a.application_name, ''),
       case when l.pid is null then 'prepared' else coalesce(a.state, a.backend_type, 'unknown') end,
       coalesce(extract(epoch from clock_timestamp() - a.xact_start), 0)::float8 as age
from pg_locks l
left join pg_stat_activity a on a.pid = l.pid
where l.locktype = 'relation' and l.granted and l.database = (select oid from pg_database where datname = current_database())
  and l.relation = to_regclass('waybill.' || @table::text) and l.pid is distinct from pg_backend_pid()
order by age desc
limit 3
