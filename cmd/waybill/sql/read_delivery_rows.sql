-- What the rows of deliveries say, as far as the checker counts it itself.
select id, state, version, attempts, cycle, cycle_attempts, proof from waybill.deliveries
