-- Attempts that may have been received, newest first, from below the cursor; each filter
-- may be null.
select position, tenant, recorded_at, delivery_id, seq, endpoint_id, event, attempt, reason
from waybill.audit_doubts
where tenant = @tenant and position < @before
  and (@since::timestamptz is null or recorded_at >= @since) and (@until::timestamptz is null or recorded_at < @until)
  and (@endpoint::uuid is null or endpoint_id = @endpoint)
order by position desc
limit @limit
