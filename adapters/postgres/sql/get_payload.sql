-- The bytes of a delivery's message, as they came; null once erased.
select m.id, m.content_type, m.payload
from waybill.deliveries d join waybill.messages m on m.id = d.message_id
where d.tenant = @tenant and d.id = @id
