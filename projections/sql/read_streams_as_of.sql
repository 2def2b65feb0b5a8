-- What streams of one kind held at a time, stream by stream in order of seq.
select tenant, stream::text, stream_id, seq, position, name, version, recorded_at, actor, endpoint_id,
       trace_parent, data, hash
from waybill.events
where stream = @stream::text::waybill.stream_kind and tenant = @tenant and stream_id = any (@ids::uuid[]) and recorded_at <= @at
order by stream_id, seq
