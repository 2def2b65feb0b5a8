-- Every tenant's rows of a range of ids, in order of id: for verification.
select d.id, d.tenant, d.endpoint_id, d.message_id, d.event_type, d.idempotency_key, d.ordering_key, d.state, d.version,
       d.attempts, d.cycle, d.cycle_attempts, d.due_at, d.claim_token, d.failure_reason, d.last_outcome, d.last_attempt,
       d.unknown_attempts, d.proof, d.forced_after, d.held_by, d.payload_erased, d.created_at, d.updated_at, d.head_hash,
       c.worker, c.lease_until
from waybill.deliveries d
left join waybill.claims c on c.token = d.claim_token
where d.id > @after and d.id <= @up_to
order by d.id
