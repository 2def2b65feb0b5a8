-- The owners of idempotency keys: their fingerprints, salts and deliveries as they
-- are now. After erasure the salt is null.
select k.scope, k.key, k.message_id, k.fingerprint, m.salt,
       coalesce(array_agg(d.id order by d.endpoint_id) filter (where d.id is not null), '{}'),
       coalesce(array_agg(d.endpoint_id order by d.endpoint_id) filter (where d.id is not null), '{}'),
       coalesce(array_agg(d.state order by d.endpoint_id) filter (where d.id is not null), '{}')
from unnest(@scopes::uuid[], @keys::text[]) g (scope, key)
join waybill.idempotency_keys k on k.scope = g.scope and k.key = g.key
left join waybill.messages m on m.id = k.message_id
left join waybill.deliveries d on d.id = any (m.delivery_ids)
group by k.scope, k.key, m.id
