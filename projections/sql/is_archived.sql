-- Whether an id is of a month that is being archived or has been.
select exists (select from waybill.archives where low <= @id and high > @id)
