-- The whole log of deliveries as it is, in position order.
select tenant, stream::text, stream_id, seq, position, name, version, recorded_at, actor, endpoint_id,
       trace_parent, data, hash
from waybill.events
where stream = 'delivery'
order by position
