-- Locks messages of a tenant, in order of id, so that of two who erase one is first.
select id, delivery_ids, payload is null as erased from waybill.messages
where tenant = @tenant and id = any (@ids::uuid[])
order by id
for no key update
