-- The stream that the n-th record from a stream on belongs to, in order of streams.
select stream_id from waybill.events
where stream = @stream::text::waybill.stream_kind and stream_id > @after
order by stream_id, seq
offset @n limit 1
