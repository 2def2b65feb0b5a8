-- Who may have drawn a position and not ended: the lock is taken before a position is
-- drawn and let go after what was written is visible. By virtual transaction, never by
-- process: a prepared transaction has none, and a session outlives what it began.
select l.virtualtransaction, coalesce(l.pid, 0), coalesce(a.application_name, ''), case when l.pid is null then 'prepared' else coalesce(a.state, 'unknown') end,
       coalesce(extract(epoch from clock_timestamp() - a.xact_start), 0)::float8
from pg_locks l
left join pg_stat_activity a on a.pid = l.pid
where l.locktype = 'relation' and l.mode = 'RowExclusiveLock' and l.granted
  and l.database = (select oid from pg_database where datname = current_database())
  and l.relation = to_regclass('waybill.events')
