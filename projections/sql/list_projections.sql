-- How far every projection is, and how many positions of the sealed log it has before it.
select p.name, p.version, p.position, greatest(coalesce(h.last - p.position, 0), 0), p.state, p.error, p.stream, p.stream_id,
       p.seq, p.rebuilt_at
from waybill.projection_checkpoints p
cross join waybill.ledger_head h
order by p.name
