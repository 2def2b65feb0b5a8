-- Blocks in order, from one number on.
select number, first, last, count, root, nodes from waybill.blocks
where number >= @from order by number limit @limit
