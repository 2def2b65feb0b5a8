-- Messages in order of id, from above the cursor, as far as one page goes: which of them
-- are the tenant's, hold anything and were made before the bound, and where the page ends.
-- Ids are time-ordered; the five minutes allow for what a submission may wait.
with page as (
  select m.id, m.tenant = @tenant and m.created_at < @before::timestamptz and m.payload is not null as erasable
  from waybill.messages m
  where m.id > @after and m.id < waybill.uuid_floor(@before::timestamptz + interval '5 minutes')
  order by m.id
  limit @limit)
select coalesce(array_agg(id order by id) filter (where erasable), '{}'),
       (select id from page order by id desc limit 1), count(*)
from page
