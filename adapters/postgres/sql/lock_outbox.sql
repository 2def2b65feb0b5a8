-- Locks rows of the outbox that wait, oldest first, passing over those that another
-- process is moving and those whose transaction has not committed.
select id, tenant, endpoint_id, event_type, content_type, payload, idempotency_key, ordering_key, not_before
from waybill.outbox
where error is null and id > @after
order by id
limit @limit
for update skip locked
