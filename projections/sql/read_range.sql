-- All records of one kind, which the caller knows, in a range of stream ids, stream by stream
-- in order of seq.
select tenant, stream_id, seq, position, name, version, recorded_at, actor, endpoint_id,
       trace_parent, data, hash
from waybill.events
where stream = @stream::text::waybill.stream_kind and stream_id > @after and stream_id <= @up_to
order by stream_id, seq
