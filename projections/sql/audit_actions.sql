-- What people did, newest first, from below the cursor; each filter may be null.
select position, tenant, recorded_at, actor, on_behalf_of, action, stream, stream_id, seq, endpoint_id, reason, data
from waybill.audit_actions
where tenant = @tenant and position < @before
  and (@since::timestamptz is null or recorded_at >= @since) and (@until::timestamptz is null or recorded_at < @until)
  and (@actor::text is null or actor = @actor) and (@endpoint::uuid is null or endpoint_id = @endpoint)
  and (@names::text[] is null or action = any (@names))
order by position desc
limit @limit
