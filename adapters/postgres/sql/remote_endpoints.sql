-- A tenant's active endpoints that remote workers claim from.
select id from waybill.endpoints
where tenant = @tenant and mode = 'remote' and status = 'active'
