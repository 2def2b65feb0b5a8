-- Whether a worker owns a delivery.
select exists (
    select 1
    from waybill.claims c
    join waybill.deliveries d on d.id = any (c.delivery_ids) and d.claim_token = c.token
    where c.worker = @worker)
