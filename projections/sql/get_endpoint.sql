-- One endpoint of a tenant; no row where it is another's.
select id, tenant, url, url_fingerprint, description, mode, event_types, policy, status, version, head_hash,
       created_at, updated_at
from waybill.endpoints
where tenant = @tenant and id = @id
