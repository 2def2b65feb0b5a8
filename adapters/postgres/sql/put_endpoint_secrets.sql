-- Keeps an endpoint's sealed target, in the transaction of the change that made it.
insert into waybill.endpoint_secrets (endpoint_id, version, sealed)
values (@id, @version, @sealed)
on conflict (endpoint_id) do update set version = excluded.version, sealed = excluded.sealed
