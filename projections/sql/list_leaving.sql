-- The ranges of delivery ids whose rows are leaving, before their events do.
select low, high from waybill.archives where stage in ('kept', 'cleared') order by low
