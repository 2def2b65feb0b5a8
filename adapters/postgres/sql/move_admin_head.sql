-- Moves the head of a tenant's administrative stream to its last record.
update waybill.admin_heads set version = @version, head_hash = @head_hash, last_at = @last_at where tenant = @tenant
