-- The block that a position is in.
select number, first, last, count, root, nodes from waybill.blocks
where last >= @position order by last limit 1
