-- The id so many rows above another, within a range of ids.
select id from waybill.deliveries where id > @after and id <= @up_to order by id offset @skip limit 1
