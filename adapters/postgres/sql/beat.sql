-- Says that a worker is alive, and returns who is, oldest first.
with me as (
  insert into waybill.workers (id, name, started_at, seen_at) values (@id, @name, now(), now())
  on conflict (id) do update set seen_at = excluded.seen_at
  returning id)
select w.id from waybill.workers w where w.seen_at > now() - @alive::interval and w.id <> @id
union select id from me
order by 1
