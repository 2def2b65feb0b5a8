-- How many rows of the outbox wait ('') or were refused, by code, with the oldest of
-- each and its age in seconds.
select coalesce(error, ''), count(*), min(id), extract(epoch from now() - min(created_at))::float8
from waybill.outbox
group by 1
order by 1
