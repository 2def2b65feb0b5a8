-- Who has due work among the newest deliveries: their ids are time-ordered.
select distinct endpoint_id
from waybill.deliveries
where id > waybill.uuid_floor(@since) and due_at is not null and due_at <= now()
