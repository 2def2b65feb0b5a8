-- The newest endpoint's sealed target; no row where there is no endpoint.
select endpoint_id, sealed
from waybill.endpoint_secrets
order by endpoint_id desc
limit 1
