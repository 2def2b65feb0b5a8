-- Deliveries that wait at archived endpoints, due or not.
select d.id, d.tenant, d.endpoint_id, d.message_id, d.event_type, d.idempotency_key, d.ordering_key, d.state, d.version,
       d.attempts, d.cycle, d.cycle_attempts, d.due_at, d.claim_token, d.failure_reason, d.last_outcome, d.last_attempt,
       d.unknown_attempts, d.proof, d.forced_after, d.held_by, d.payload_erased, d.created_at, d.updated_at, d.head_hash,
       null::text, null::timestamptz
from waybill.endpoints e
cross join lateral (
  select q.* from waybill.deliveries q
  where q.endpoint_id = e.id and q.due_at is not null
  order by q.due_at
  limit @limit) d
where e.status = 'archived'
limit @limit
