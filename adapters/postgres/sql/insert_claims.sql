-- Writes down claims of one delivery each.
insert into waybill.claims (token, worker, lease_until, delivery_ids)
select c.token, @worker, @lease_until, array[c.id]
from unnest(@tokens::uuid[], @ids::uuid[]) c (token, id)
