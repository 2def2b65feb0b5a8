-- Of the next deliveries below the cursor that there were at a time: those that have not
-- changed since by state, how many they are and how many the filter wants; and the ids of
-- the others, in a row without a state. Each row ends with the lowest id of all.
with page as (
  select d.id, case when d.updated_at <= @at then d.state end as state,
         (@state::text is null or d.state = @state)
         and (@in_doubt::boolean is null or (d.last_outcome is not distinct from 'unknown' and d.state <> 'delivered') = @in_doubt)
         and (@ever_unknown::boolean is null or (d.unknown_attempts > 0) = @ever_unknown)
         and (@payload_erased::boolean is null or d.payload_erased = @payload_erased) as wanted
  from waybill.deliveries d
  where d.tenant = @tenant
    and d.created_at <= @at and d.id < waybill.uuid_floor(@at::timestamptz + interval '5 minutes')
    and (@before::uuid is null or d.id < @before)
    and (@endpoint::uuid is null or d.endpoint_id = @endpoint)
    and (@event_type::text is null or d.event_type = @event_type)
    and (@idempotency_key::text is null or d.idempotency_key = @idempotency_key)
    and (@since::timestamptz is null
         or d.created_at >= @since and d.id >= waybill.uuid_floor(@since::timestamptz - interval '5 minutes'))
    and (@until::timestamptz is null
         or d.created_at < @until and d.id < waybill.uuid_floor(@until::timestamptz + interval '5 minutes'))
  order by d.id desc
  limit @limit)
select state, count(*), count(*) filter (where wanted), array_agg(id) filter (where state is null),
       (select p.id from page p order by p.id limit 1)
from page
group by state
