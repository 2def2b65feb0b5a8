-- Whether a message was written: asked after a commit whose answer was lost.
select exists (select from waybill.messages where id = @id)
