-- Removes rows that are in the log now, in the same transaction.
delete from waybill.outbox where id = any (@ids::bigint[])
