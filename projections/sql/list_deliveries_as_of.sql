-- Rows of a tenant's deliveries that there were at a time, newest first, from below the
-- cursor; every filter may be null. What may change in a delivery's life is compared only
-- in rows that have not changed since: the others have to be folded first.
select d.id, d.tenant, d.endpoint_id, d.message_id, d.event_type, d.idempotency_key, d.ordering_key, d.state, d.version,
       d.attempts, d.cycle, d.cycle_attempts, d.due_at, d.claim_token, d.failure_reason, d.last_outcome, d.last_attempt,
       d.unknown_attempts, d.proof, d.forced_after, d.held_by, d.payload_erased, d.created_at, d.updated_at, d.head_hash,
       c.worker, c.lease_until
from waybill.deliveries d
left join waybill.claims c on c.token = d.claim_token
where d.tenant = @tenant
  and d.created_at <= @at and d.id < waybill.uuid_floor(@at::timestamptz + interval '5 minutes')
  and (@before::uuid is null or d.id < @before)
  and (@endpoint::uuid is null or d.endpoint_id = @endpoint)
  and (@event_type::text is null or d.event_type = @event_type)
  and (@idempotency_key::text is null or d.idempotency_key = @idempotency_key)
  and (@since::timestamptz is null
       or d.created_at >= @since and d.id >= waybill.uuid_floor(@since::timestamptz - interval '5 minutes'))
  and (@until::timestamptz is null
       or d.created_at < @until and d.id < waybill.uuid_floor(@until::timestamptz + interval '5 minutes'))
  and (d.updated_at > @at
       or (@state::text is null or d.state = @state)
          and (@in_doubt::boolean is null or (d.last_outcome is not distinct from 'unknown' and d.state <> 'delivered') = @in_doubt)
          and (@ever_unknown::boolean is null or (d.unknown_attempts > 0) = @ever_unknown)
          and (@payload_erased::boolean is null or d.payload_erased = @payload_erased))
order by d.id desc
limit @limit
