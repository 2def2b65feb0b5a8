-- Adds closed blocks in order; a trigger refuses what does not follow the one before.
insert into waybill.blocks (number, first, last, count, root, nodes)
select b.number, b.first, b.last, b.count, b.root, b.nodes
from unnest(@numbers::bigint[], @firsts::bigint[], @lasts::bigint[], @counts::int[], @roots::bytea[], @nodes::bytea[])
  b (number, first, last, count, root, nodes)
order by b.number
