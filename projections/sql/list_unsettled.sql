-- The first deliveries of a month that have not ended.
select id, tenant, state from waybill.deliveries
where id >= @low and id < @high and state not in ('delivered', 'failed', 'cancelled')
order by id limit @limit
