-- A tenant's records of some names (null: of all) in order of position, from above one
-- position to another, for readers who stay below the horizon.
select tenant, stream::text, stream_id, seq, position, name, version, recorded_at, actor, endpoint_id,
       trace_parent, data, hash
from waybill.events
where position > @after and position <= @last and tenant = @tenant and (@names::text[] is null or name = any (@names))
order by position
limit @limit
