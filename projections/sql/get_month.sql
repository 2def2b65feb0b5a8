-- The oldest and the newest delivery of a month, how many have not ended, and the last
-- position of its events.
select (select e.stream_id from waybill.events e where e.stream = 'delivery' and e.stream_id >= @low and e.stream_id < @high
        order by e.stream_id limit 1),
       (select e.stream_id from waybill.events e where e.stream = 'delivery' and e.stream_id >= @low and e.stream_id < @high
        order by e.stream_id desc limit 1),
       (select count(*) from waybill.deliveries d
        where d.id >= @low and d.id < @high and d.state not in ('delivered', 'failed', 'cancelled')),
       (select coalesce(max(e.position), 0) from waybill.events e
        where e.stream = 'delivery' and e.stream_id >= @low and e.stream_id < @high)
