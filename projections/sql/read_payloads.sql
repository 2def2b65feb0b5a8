-- The bytes of messages and what the log knows of them: for verification.
select id, payload, salt, commitment from waybill.messages where id = any (@ids::uuid[])
