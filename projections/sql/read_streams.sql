-- All records of many streams of one kind, stream by stream in order of seq.
select tenant, stream::text, stream_id, seq, position, name, version, recorded_at, actor, endpoint_id,
       trace_parent, data, hash
from waybill.events
where stream = @stream::text::waybill.stream_kind and stream_id = any (@ids::uuid[])
order by stream_id, seq
