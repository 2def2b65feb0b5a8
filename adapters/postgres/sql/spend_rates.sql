-- Grants what is left of budgets: one upsert a subject, in order, so that two callers
-- cannot deadlock. Windows are fixed and by the database's clock; one that runs
-- backwards stays in the later window.
insert into waybill.rate_limit_counters as c (subject, window_start, most, wanted, granted, used)
select w.subject, to_timestamp(floor(extract(epoch from now()) / w.per) * w.per), w.most, w.wanted,
    least(w.wanted, w.most), least(w.wanted, w.most)
from unnest(@subjects::uuid[], @wanted::bigint[], @most::bigint[], @per::int[]) w (subject, wanted, most, per)
order by w.subject
on conflict (subject) do update
set window_start = greatest(c.window_start, excluded.window_start), most = excluded.most, wanted = excluded.wanted,
    granted = greatest(0, least(excluded.wanted, excluded.most
      - case when c.window_start < excluded.window_start then 0 else c.used end)),
    used = case when c.window_start < excluded.window_start then 0 else c.used end
      + greatest(0, least(excluded.wanted, excluded.most
      - case when c.window_start < excluded.window_start then 0 else c.used end))
returning subject, granted, most - used, window_start, now()
