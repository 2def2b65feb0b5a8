-- Who owns a projection's table, and whether we may act as that role.
select r.rolname::text, pg_has_role(current_user, r.oid, 'member')
from pg_class c join pg_roles r on r.oid = c.relowner
where c.oid = to_regclass('waybill.' || @table::text)
