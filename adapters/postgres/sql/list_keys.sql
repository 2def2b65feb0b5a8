-- A tenant's API keys, newest first.
select id, tenant, name, scopes, coalesce(rate, ''), created_at, revoked_at
from waybill.api_keys where tenant = @tenant order by id desc
