-- Deliveries of a tenant in order of id, from above the cursor, as far as one page goes:
-- the messages of those that go to the endpoint, were made before the bound and are not
-- erased, and where the page ends.
with page as (
  select d.id, d.message_id,
    d.endpoint_id = @endpoint and d.created_at < @before::timestamptz and not d.payload_erased as erasable
  from waybill.deliveries d
  where d.tenant = @tenant and d.id > @after
    and d.id < waybill.uuid_floor(@before::timestamptz + interval '5 minutes')
  order by d.id
  limit @limit)
select coalesce(array_agg(message_id order by message_id) filter (where erasable), '{}'),
       (select id from page order by id desc limit 1), count(*)
from page
