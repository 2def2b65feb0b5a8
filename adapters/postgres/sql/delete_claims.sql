-- Removes claims none of whose deliveries is processing under them any more.
delete from waybill.claims where token = any (@tokens::uuid[])
