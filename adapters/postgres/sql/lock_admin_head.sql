-- Locks the head of a tenant's administrative stream: these are never optimistic.
select stream_id, version, head_hash, last_at from waybill.admin_heads where tenant = @tenant for no key update
