-- Says that a worker is gone, and forgets those that fell silent long ago.
delete from waybill.workers where id = @id or seen_at < now() - interval '1 day'
