-- Keeps the digest of an API key; the key itself is nowhere.
insert into waybill.api_keys (id, tenant, name, digest, scopes, rate, created_at)
values (@id, @tenant, @name, @digest, @scopes, @rate, @created_at)
