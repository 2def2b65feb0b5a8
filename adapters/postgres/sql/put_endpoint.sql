-- Writes an endpoint's row as its events have made it.
insert into waybill.endpoints (id, tenant, url, url_fingerprint, description, mode, event_types, policy, status, version,
    head_hash, created_at, updated_at)
values (@id, @tenant, @url, @url_fingerprint, @description, @mode, @event_types, @policy, @status, @version,
    @head_hash, @created_at, @updated_at)
on conflict (id) do update
set url = excluded.url, url_fingerprint = excluded.url_fingerprint, description = excluded.description,
    event_types = excluded.event_types, policy = excluded.policy, status = excluded.status, version = excluded.version,
    head_hash = excluded.head_hash, updated_at = excluded.updated_at
