-- Positions and hashes of events in order of position, also of those that were archived:
-- as they come, for whoever keeps none of them. While a month is being archived its events
-- are in both places, and come twice.
select position, hash from (
  select position, hash from waybill.events where position > @after and position <= @last
  union all
  select position, hash from waybill.archived_leaves where position > @after and position <= @last) leaves
order by position
