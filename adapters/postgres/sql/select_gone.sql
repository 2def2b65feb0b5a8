-- Deliveries that wait at archived endpoints, due or not.
select d.id, d.tenant, d.endpoint_id, d.message_id, d.event_type, d.idempotency_key, d.ordering_key, d.state, d.version,
       d.attempts, d.cycle, d.cycle_attempts, d.due_at, d.claim_token, d.failure_reason, d.last_outcome, d.last_attempt,
       d.unknown_attempts, d.proof, d.forced_after, d.held_by, d.payload_erased, d.created_at, d.updated_at, d.head_hash,
       null::text, null::timestamptz
from waybill.endpoints e
cross join lateral (
  select q.id, q.tenant, q.endpoint_id, q.message_id, q.event_type, q.idempotency_key, q.ordering_key, q.state, q.version,
    q.attempts, q.cycle, q.cycle_attempts, q.due_at, q.claim_token, q.failure_reason, q.last_outcome, q.last_attempt,
    q.unknown_attempts, q.proof, q.forced_after, q.held_by, q.payload_erased, q.created_at, q.updated_at, q.head_hash
  from waybill.deliveries q
  where q.endpoint_id = e.id and q.due_at is not null and q.id <> all (@skip::uuid[])
  order by q.due_at
  limit @limit) d
where e.status = 'archived'
limit @limit
