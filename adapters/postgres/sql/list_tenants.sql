-- All tenants, by name.
select name, id, created_at from waybill.tenants order by name
