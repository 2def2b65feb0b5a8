-- What the blocks of these numbers complete in the tree of blocks.
select number, nodes from waybill.blocks where number = any (@numbers::bigint[])
