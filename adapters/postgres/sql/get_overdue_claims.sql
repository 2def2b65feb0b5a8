-- How many claims ran out more than a minute ago and were not recovered, and how long
-- ago the oldest did, in seconds.
select count(*), coalesce(extract(epoch from now() - min(lease_until)), 0)::float8
from waybill.claims
where lease_until < now() - interval '1 minute'
