-- How many deliveries have not ended.
select count(*) from waybill.deliveries where state not in ('delivered', 'failed', 'cancelled')
