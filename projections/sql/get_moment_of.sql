-- The first event from a position on, and when it was recorded; no row at the log's end.
select position, recorded_at from waybill.events where position >= @position order by position limit 1
