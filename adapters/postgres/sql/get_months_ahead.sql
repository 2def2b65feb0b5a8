-- How many months beyond the present one have their partition, up to the first that is
-- missing; -1 if the present one is.
select coalesce(min(i) - 1, 24)
from generate_series(0, 24) i
where to_regclass('waybill.events_delivery_' ||
    to_char((now() at time zone 'UTC') - ((extract(day from now() at time zone 'UTC') - 1) * interval '1 day')
        + make_interval(months => i), 'YYYY_MM')) is null
