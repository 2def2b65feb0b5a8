-- Erases what receivers answered to deliveries.
update waybill.exchanges set salt = null, excerpt = null, location = null, detail = null
where delivery_id = any (@ids::uuid[])
