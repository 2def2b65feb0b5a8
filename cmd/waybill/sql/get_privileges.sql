-- Who we are to the database, and whether that role could change the log: a superuser,
-- or a member of the role that owns it.
select r.rolname::text, r.rolsuper, pg_catalog.pg_has_role(r.oid, c.relowner, 'member')
from pg_catalog.pg_class c
cross join pg_catalog.pg_roles r
where c.oid = pg_catalog.to_regclass('waybill.events') and r.rolname = current_user
