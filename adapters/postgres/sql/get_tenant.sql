-- One tenant.
select name, id, created_at from waybill.tenants where name = @name
