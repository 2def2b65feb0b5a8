-- A stream's records of one tenant, in order of seq, from above the cursor.
select tenant, stream::text, stream_id, seq, position, name, version, recorded_at, actor, endpoint_id,
       trace_parent, data, hash
from waybill.events
where stream = @stream::text::waybill.stream_kind and stream_id = @id and tenant = @tenant and seq > @after
order by seq
limit @limit
