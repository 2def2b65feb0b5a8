-- The API key that has this digest, if it opens anything.
select id, tenant, name, scopes, coalesce(rate, ''), created_at, revoked_at
from waybill.api_keys where digest = @digest and revoked_at is null
