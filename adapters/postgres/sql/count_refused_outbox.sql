-- How many rows of the outbox were refused.
select count(*) from waybill.outbox where error is not null
