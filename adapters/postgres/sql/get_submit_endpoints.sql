-- What a submission needs to know of endpoints, of any tenant.
select id, tenant, status, coalesce(submit_rate, ''), coalesce(policy #>> '{retries,delays,0}', '0s')
from waybill.endpoints where id = any (@ids::uuid[])
