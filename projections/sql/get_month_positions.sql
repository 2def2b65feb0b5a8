-- Between which positions the events of a month's deliveries lie; zeros where there are
-- none.
select coalesce(min(position), 0), coalesce(max(position), 0), count(*), count(distinct stream_id)
from waybill.events
where stream = 'delivery' and stream_id >= @low and stream_id < @high
