-- Locks one endpoint of a tenant, so that changes to it follow one another, and
-- returns it with its sealed target. Both rows are locked: whoever has waited gets the
-- newest version of what it locks, and of what it only joins the one it saw before.
select e.id, e.tenant, e.url, e.url_fingerprint, e.description, e.mode, e.event_types, e.policy, e.status, e.version,
       e.head_hash, e.created_at, e.updated_at, s.sealed
from waybill.endpoints e
join waybill.endpoint_secrets s on s.endpoint_id = e.id
where e.tenant = @tenant and e.id = @id
for no key update of e, s
