-- A tenant's endpoints that take messages, with the event types they want.
select id, tenant, status, coalesce(submit_rate, ''), coalesce(policy #>> '{retries,delays,0}', '0s'), event_types
from waybill.endpoints
where tenant = @tenant and status <> 'archived'
order by id
