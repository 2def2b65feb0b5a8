-- The streams of a kind that have records above a position.
select distinct stream_id from waybill.events
where stream = @stream::text::waybill.stream_kind and position > @after
order by stream_id
