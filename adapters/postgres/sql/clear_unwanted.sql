-- Deletes a number of a month's messages that nobody wanted, with their keys. Returns how
-- many it were.
with gone as (
  delete from waybill.messages m
  where m.id in (select x.id from waybill.messages x
    where x.id >= @low and x.id < @high and x.delivery_ids = '{}' order by x.id limit @limit)
  returning m.id),
keys as (
  delete from waybill.idempotency_keys k where (k.message_id in (select id from gone)) is true)
select count(*) from gone
