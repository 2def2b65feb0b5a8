-- What went to whom, newest first, from below the cursor; each filter may be null.
select position, tenant, recorded_at, actor, delivery_id, seq, endpoint_id, attempt, started_at, host, outcome, reason,
       status, duration_ms, superseded
from waybill.audit_attempts
where tenant = @tenant and position < @before
  and (@since::timestamptz is null or recorded_at >= @since) and (@until::timestamptz is null or recorded_at < @until)
  and (@actor::text is null or actor = @actor) and (@endpoint::uuid is null or endpoint_id = @endpoint)
  and (@host::text is null or host = lower(@host))
order by position desc
limit @limit
