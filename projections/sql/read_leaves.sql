-- Positions and hashes of events in order of position, also of those that were archived;
-- while a month is being archived its events are in both places.
select distinct on (position) position, hash from (
  (select position, hash from waybill.events
   where position > @after and position <= @last order by position limit @limit)
  union all
  (select position, hash from waybill.archived_leaves
   where position > @after and position <= @last order by position limit @limit)) leaves
order by position
limit @limit
