-- Writes the rows of new deliveries; what is not named here is as the fold of one
-- scheduled event leaves it.
insert into waybill.deliveries (id, tenant, endpoint_id, message_id, event_type, idempotency_key, ordering_key, state,
    version, attempts, cycle, cycle_attempts, due_at, last_attempt, unknown_attempts, proof, forced_after,
    payload_erased, created_at, updated_at, head_hash)
select d.id, d.tenant, d.endpoint_id, d.message_id, d.event_type, d.idempotency_key, d.ordering_key, 'pending',
    1, 0, 1, 0, d.due_at, 0, 0, 0, 0, false, d.created_at, d.created_at, d.head_hash
from unnest(@ids::uuid[], @tenants::text[], @endpoints::uuid[], @messages::uuid[], @event_types::text[], @keys::text[],
    @ordering::text[], @dues::timestamptz[], @created::timestamptz[], @heads::bytea[])
  d (id, tenant, endpoint_id, message_id, event_type, idempotency_key, ordering_key, due_at, created_at, head_hash)
