-- Deletes claims none of whose deliveries is there any more.
delete from waybill.claims c
where exists (select from unnest(c.delivery_ids) i (id) where i.id >= @low and i.id < @high)
  and not exists (select from waybill.deliveries d where d.id = any (c.delivery_ids))
