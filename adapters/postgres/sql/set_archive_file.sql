-- Says which file holds a closed month.
update waybill.archives
set stage = case when stage = 'closed' then 'exported' else stage end, file = @file, sha256 = @sha256, events = @events,
    deliveries = @deliveries, first_position = @first, last_position = @last
where low = @low and stage in ('closed', 'exported', 'kept', 'cleared')
