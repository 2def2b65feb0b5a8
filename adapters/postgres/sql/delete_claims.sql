-- Removes claims. The caller knows that none of their deliveries is processing under
-- them any more.
delete from waybill.claims where token = any (@tokens::uuid[])
