-- Occupies idempotency keys, in order, waiting for whoever is about to occupy the
-- same; returns the messages that got theirs. Who is not among them has lost to the
-- key's present owner.
insert into waybill.idempotency_keys (scope, key, tenant, message_id, fingerprint, created_at)
select k.scope, k.key, k.tenant, k.message_id, k.fingerprint, @now
from unnest(@scopes::uuid[], @keys::text[], @tenants::text[], @message_ids::uuid[], @fingerprints::bytea[])
  k (scope, key, tenant, message_id, fingerprint)
order by k.scope, k.key
on conflict (scope, key) do nothing
returning message_id
