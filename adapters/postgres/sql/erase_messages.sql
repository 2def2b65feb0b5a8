-- Erases the bytes and the salts of messages.
update waybill.messages set payload = null, salt = null, erased_at = @now where id = any (@ids::uuid[])
