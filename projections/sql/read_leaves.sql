-- Positions and hashes of events in order of position, also of those that were archived.
select position, hash from (
  (select position, hash from waybill.events
   where position > @after and position <= @last order by position limit @limit)
  union all
  (select position, hash from waybill.archived_leaves
   where position > @after and position <= @last order by position limit @limit)) leaves
order by position
limit @limit
