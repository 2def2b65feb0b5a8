-- Adds what some records change to the rows of outcomes_hourly.
insert into waybill.outcomes_hourly as o (tenant, endpoint_id, hour, succeeded, refused, unreached, unknown, lost)
select a.tenant, a.endpoint_id, to_timestamp(a.hour), a.succeeded, a.refused, a.unreached, a.unknown, a.lost
from unnest(@tenants::text[], @endpoints::uuid[], @hours::bigint[], @succeeded::bigint[], @refused::bigint[],
    @unreached::bigint[], @unknown::bigint[], @lost::bigint[])
  a (tenant, endpoint_id, hour, succeeded, refused, unreached, unknown, lost)
on conflict (tenant, endpoint_id, hour) do update
set succeeded = o.succeeded + excluded.succeeded, refused = o.refused + excluded.refused,
    unreached = o.unreached + excluded.unreached, unknown = o.unknown + excluded.unknown, lost = o.lost + excluded.lost
