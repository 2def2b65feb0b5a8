-- Takes the archiving of a month from one stage to the next, if it still is at the one.
update waybill.archives
set stage = @stage, ended_at = case when @stage::text = 'detached' then clock_timestamp() else ended_at end
where low = @low and stage = @from
