-- Records from above one position to another, in order of position, that an export is to
-- hold; each bound on what it holds may be null.
select tenant, stream::text, stream_id, seq, position, name, version, recorded_at, actor, endpoint_id,
       trace_parent, data, hash
from waybill.events
where position > @after and position <= @last
  and (@tenant::text is null or tenant = @tenant)
  and (@names::text[] is null or name = any (@names))
  and (@since::timestamptz is null or recorded_at >= @since)
  and (@until::timestamptz is null or recorded_at < @until)
  and (@low::uuid is null or stream = 'delivery' and stream_id >= @low and stream_id < @high)
order by position
limit @limit
