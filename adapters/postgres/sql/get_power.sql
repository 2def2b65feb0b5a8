-- Who we are to the database, and what that role could do to the log: everything, as a
-- superuser; everything, as a member of the role that owns it; or change a part of it.
select r.rolname::text, r.rolsuper, pg_has_role(r.oid, c.relowner, 'member'),
       (select coalesce(bool_or(has_table_privilege(r.oid, p.relid, 'UPDATE, DELETE, TRUNCATE')), false)
        from pg_partition_tree(c.oid) p)
from pg_class c
cross join pg_roles r
where c.oid = to_regclass('waybill.events') and r.rolname = current_user
