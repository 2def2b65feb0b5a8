-- Locks a projection that runs and is of the version named, so that nobody else moves it;
-- no row where somebody does. Says how far it is and how far it may go.
select p.position, h.last
from waybill.projection_checkpoints p
cross join waybill.ledger_head h
where p.name = @name and p.version = @version and p.state = 'running' and p.position is not null
for update of p skip locked
