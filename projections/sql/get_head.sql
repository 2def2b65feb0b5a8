-- How far the log is settled and sealed.
select ledger, epoch, blocks, last, sealed_at from waybill.ledger_head
