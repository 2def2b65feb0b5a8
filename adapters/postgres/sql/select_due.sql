-- Locks due deliveries of the given endpoints, a bounded number of each, passing over
-- what others hold, together with what is needed to send them. Policy and sealed
-- target come only where the caller does not know that version of the endpoint yet. An
-- endpoint's cap is divided among the workers, and what the caller has in flight counts.
select d.id, d.tenant, d.endpoint_id, d.message_id, d.event_type, d.idempotency_key, d.ordering_key, d.state, d.version,
       d.attempts, d.cycle, d.cycle_attempts, d.due_at, d.claim_token, d.failure_reason, d.last_outcome, d.last_attempt,
       d.unknown_attempts, d.proof, d.forced_after, d.held_by, d.payload_erased, d.created_at, d.updated_at, d.head_hash,
       null::text, null::timestamptz,
       d.tid, m.content_type, m.payload, coalesce(m.trace_parent, ''),
       e.version, case when e.version <> w.known then e.policy end, case when e.version <> w.known then s.sealed end,
       now()
from unnest(@endpoints::uuid[], @since::timestamptz[], @quotas::int[], @busy::int[], @known::int[])
  w (id, since, quota, busy, known)
join waybill.endpoints e on e.id = w.id and e.status = 'active' and e.mode = @mode
  and (@tenant::text is null or e.tenant = @tenant)
join waybill.endpoint_secrets s on s.endpoint_id = e.id
cross join lateral (
  select q.id, q.tenant, q.endpoint_id, q.message_id, q.event_type, q.idempotency_key, q.ordering_key, q.state, q.version,
    q.attempts, q.cycle, q.cycle_attempts, q.due_at, q.claim_token, q.failure_reason, q.last_outcome, q.last_attempt,
    q.unknown_attempts, q.proof, q.forced_after, q.held_by, q.payload_erased, q.created_at, q.updated_at, q.head_hash,
    q.ctid as tid
  from waybill.deliveries q
  where q.endpoint_id = w.id and q.due_at >= w.since and q.due_at <= now() and q.id <> all (@skip::uuid[])
  order by q.due_at
  limit greatest(0, least(w.quota,
      e.max_in_flight / @workers::int + (@rank::int < e.max_in_flight % @workers::int)::int - w.busy))
  for no key update skip locked) d
join waybill.messages m on m.id = d.message_id
limit @batch
