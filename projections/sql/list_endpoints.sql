-- A tenant's endpoints, newest first, from below the cursor.
select id, tenant, url, url_fingerprint, description, mode, event_types, policy, status, version, head_hash,
       created_at, updated_at
from waybill.endpoints
where tenant = @tenant and (@before::uuid is null or id < @before)
order by id desc
limit @limit
