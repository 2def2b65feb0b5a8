-- Every month that is being archived or has been, and how far that has come.
select to_char(month, 'YYYY-MM'), stage, coalesce(file, ''), sha256, coalesce(events, 0), coalesce(deliveries, 0),
       coalesce(first_position, 0), coalesce(last_position, 0), reason, began_at, ended_at
from waybill.archives
order by month
