-- Every tenant's rows in order of id, from above the cursor: for verification.
select id, tenant, url, url_fingerprint, description, mode, event_types, policy, status, version, head_hash,
       created_at, updated_at
from waybill.endpoints
where id > @after
order by id
limit @limit
