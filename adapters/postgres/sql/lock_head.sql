-- The head, unless another process is just closing blocks.
select ledger, epoch, blocks, last, sealed_at from waybill.ledger_head for no key update skip locked
