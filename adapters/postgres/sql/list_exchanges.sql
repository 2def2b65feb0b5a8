-- What receivers answered to a delivery's attempts, in order of attempt, where it is
-- not erased.
select x.delivery_id, x.attempt, x.salt, x.excerpt, x.location, x.detail
from waybill.exchanges x join waybill.deliveries d on d.id = x.delivery_id
where d.tenant = @tenant and d.id = @id and x.salt is not null
order by x.attempt
