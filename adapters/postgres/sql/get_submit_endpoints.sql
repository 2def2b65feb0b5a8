-- What a submission needs to know of endpoints, of any tenant.
select id, tenant, status, coalesce(submit_rate, '') from waybill.endpoints where id = any (@ids::uuid[])
