-- What a fold needs of the records of many streams, stream by stream in order of seq.
select stream_id, tenant, seq, name, version, recorded_at, hash, data
from waybill.events
where stream = @stream::text::waybill.stream_kind and stream_id = any (@ids::uuid[])
order by stream_id, seq
