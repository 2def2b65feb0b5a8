-- Leaves rows where they are, with the code of their refusal.
update waybill.outbox o set error = r.code
from unnest(@ids::bigint[], @codes::text[]) r (id, code)
where o.id = r.id
