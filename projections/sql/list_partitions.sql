-- The log's partitions of deliveries: month, estimated rows, bytes with indexes, and
-- whether a detaching was begun and not ended.
select replace(substr(c.relname, length('events_delivery_') + 1), '_', '-'), greatest(c.reltuples, 0)::bigint,
       pg_total_relation_size(c.oid), i.inhdetachpending
from pg_inherits i join pg_class c on c.oid = i.inhrelid
where i.inhparent = to_regclass('waybill.events_delivery')
order by c.relname
