-- A tenant's endpoints that take messages, with the event types they want.
select id, event_types from waybill.endpoints
where tenant = @tenant and status <> 'archived'
order by id
