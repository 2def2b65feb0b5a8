-- What receivers answered, of a range of deliveries: for verification.
select delivery_id, attempt, salt, excerpt from waybill.exchanges
where delivery_id > @after and delivery_id <= @up_to
