-- Revokes a tenant's API key; a key that is revoked already stays as it is.
update waybill.api_keys set revoked_at = @revoked_at
where tenant = @tenant and id = @id and revoked_at is null
