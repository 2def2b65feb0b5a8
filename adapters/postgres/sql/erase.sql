-- Erases the bytes and the salts of messages, and of what receivers answered to deliveries.
select waybill.erase(@messages::uuid[], @deliveries::uuid[], @now)
