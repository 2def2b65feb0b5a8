-- Who has waiting work at all, and since or until when, as far as Waybill's own workers
-- are concerned: a loose index scan that reads one entry an endpoint.
with recursive t as (
  (select endpoint_id, due_at from waybill.deliveries where due_at is not null order by endpoint_id, due_at limit 1)
  union all
  select n.endpoint_id, n.due_at from t cross join lateral (
    select endpoint_id, due_at from waybill.deliveries
    where due_at is not null and endpoint_id > t.endpoint_id
    order by endpoint_id, due_at limit 1) n)
select t.endpoint_id, t.due_at, now()
from t join waybill.endpoints e on e.id = t.endpoint_id and e.mode = 'http' and e.status = 'active'
