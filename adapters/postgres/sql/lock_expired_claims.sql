-- Locks claims whose lease has run out, passing over those that another recovers.
select token, delivery_ids, now()
from waybill.claims
where lease_until < now() and token <> all (@skip::uuid[])
order by lease_until
limit @limit
for update skip locked
