-- Moves the head behind the last block and tells whoever waits for sealed events.
with moved as (
  update waybill.ledger_head set blocks = @blocks, last = @last, sealed_at = clock_timestamp() returning last)
select pg_notify(@channel, last::text) from moved
