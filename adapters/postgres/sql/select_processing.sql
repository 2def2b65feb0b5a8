-- Locks the given deliveries, as far as they still are processing under the token, in
-- id order, and returns them with their endpoints' policies.
select d.id, d.tenant, d.endpoint_id, d.message_id, d.event_type, d.idempotency_key, d.ordering_key, d.state, d.version,
       d.attempts, d.cycle, d.cycle_attempts, d.due_at, d.claim_token, d.failure_reason, d.last_outcome, d.last_attempt,
       d.unknown_attempts, d.proof, d.forced_after, d.held_by, d.payload_erased, d.created_at, d.updated_at, d.head_hash,
       null::text, null::timestamptz, e.policy
from waybill.deliveries d
join waybill.endpoints e on e.id = d.endpoint_id
where d.id = any (@ids::uuid[]) and d.claim_token = @token
order by d.id
for no key update of d
