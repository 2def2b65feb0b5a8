-- Deletes a number of a month's deliveries with what receivers answered to them, the
-- messages that no other delivery needs, and the keys of those. Returns how many it were.
with gone as (
  delete from waybill.deliveries d
  where d.id in (select x.id from waybill.deliveries x where x.id >= @low and x.id < @high order by x.id limit @limit)
  returning d.id, d.tenant, d.endpoint_id, d.message_id, d.idempotency_key),
answers as (
  delete from waybill.exchanges x where (x.delivery_id in (select id from gone)) is true),
messages as (
  delete from waybill.messages m
  where (m.id in (select message_id from gone)) is true
    and not exists (select from waybill.deliveries d
      where d.id = any (m.delivery_ids) and (d.id in (select id from gone)) is not true)
  returning m.id),
keys as (
  delete from waybill.idempotency_keys k
  using gone g left join waybill.tenants t on t.name = g.tenant
  where k.key = g.idempotency_key and k.scope in (g.endpoint_id, t.id) and k.message_id = g.message_id
    and (k.message_id in (select id from messages)) is true)
select count(*) from gone
