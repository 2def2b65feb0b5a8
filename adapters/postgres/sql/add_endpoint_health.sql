-- Adds what some records change to the rows of endpoint_health.
insert into waybill.endpoint_health as h (tenant, endpoint_id, attempts, succeeded, refused, unreached, unknown, lost, answered,
    duration_sum_ms, duration_max_ms, durations, last_attempt_at, last_success_at)
select a.tenant, a.endpoint_id, a.attempts, a.succeeded, a.refused, a.unreached, a.unknown, a.lost, a.answered,
    a.duration_sum_ms, a.duration_max_ms, a.durations::bigint[], a.last_attempt_at, a.last_success_at
from unnest(@tenants::text[], @endpoints::uuid[], @attempts::bigint[], @succeeded::bigint[], @refused::bigint[],
    @unreached::bigint[], @unknown::bigint[], @lost::bigint[], @answered::bigint[], @sums::bigint[], @maxima::bigint[],
    @durations::text[], @last_attempts::timestamptz[], @last_successes::timestamptz[])
  a (tenant, endpoint_id, attempts, succeeded, refused, unreached, unknown, lost, answered, duration_sum_ms,
    duration_max_ms, durations, last_attempt_at, last_success_at)
on conflict (tenant, endpoint_id) do update
set attempts = h.attempts + excluded.attempts, succeeded = h.succeeded + excluded.succeeded,
    refused = h.refused + excluded.refused, unreached = h.unreached + excluded.unreached,
    unknown = h.unknown + excluded.unknown, lost = h.lost + excluded.lost, answered = h.answered + excluded.answered,
    duration_sum_ms = h.duration_sum_ms + excluded.duration_sum_ms,
    duration_max_ms = greatest(h.duration_max_ms, excluded.duration_max_ms),
    durations = (select array_agg(d.x + d.y order by d.n) from unnest(h.durations, excluded.durations) with ordinality d (x, y, n)),
    last_attempt_at = greatest(h.last_attempt_at, excluded.last_attempt_at),
    last_success_at = greatest(h.last_success_at, excluded.last_success_at)
