-- Changes the rows that this transaction has just locked, by their place: locked rows
-- cannot move.
update waybill.deliveries d
set state = g.state, version = g.version, attempts = g.attempts, cycle_attempts = g.cycle_attempts, due_at = null,
    claim_token = g.claim_token, failure_reason = g.failure_reason, updated_at = g.updated_at, head_hash = g.head_hash
from unnest(@tids::tid[], @states::text[], @versions::int[], @attempts::int[], @cycle_attempts::int[], @tokens::uuid[],
    @reasons::text[], @updated::timestamptz[], @heads::bytea[])
  g (tid, state, version, attempts, cycle_attempts, claim_token, failure_reason, updated_at, head_hash)
where d.ctid = g.tid
