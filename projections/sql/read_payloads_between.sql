-- The bytes of messages in a range of ids, which costs half of naming each one, and what the
-- log knows of them: for verification. At most so many, as a range may hold others too.
select id, payload, salt, commitment from waybill.messages where id >= @least and id <= @most order by id limit @limit
