-- Keeps positions and hashes of a month's events, so that their blocks still verify when
-- they are gone.
insert into waybill.archived_leaves (position, hash)
select e.position, e.hash from waybill.events e
where e.stream = 'delivery' and e.stream_id >= @low and e.stream_id < @high
