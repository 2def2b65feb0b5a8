-- What a fold needs of the records of a range of streams, stream by stream in order of
-- seq. No end: to the last one.
select stream_id, tenant, seq, name, version, recorded_at, hash, data
from waybill.events
where stream = @stream::text::waybill.stream_kind and stream_id > @after and (@until::uuid is null or stream_id <= @until)
order by stream_id, seq
