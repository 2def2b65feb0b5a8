-- Locks a projection, waiting for whoever moves it. Says how far it is, whether a rebuild
-- can be compared with it, and how far the log is sealed.
select p.position, p.state = 'running' and p.version = @version, h.last
from waybill.projection_checkpoints p
cross join waybill.ledger_head h
where p.name = @name
for update of p
