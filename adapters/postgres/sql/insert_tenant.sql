-- Makes a tenant and the head of its administrative stream; nothing if it exists.
with t as (
  insert into waybill.tenants (name, id, created_at) values (@name, @id, @created_at)
  on conflict (name) do nothing
  returning name, id)
insert into waybill.admin_heads (tenant, stream_id, version)
select name, id, 0 from t
