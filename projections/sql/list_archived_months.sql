-- The months whose deliveries have left the ledger.
select to_char(month, 'YYYY-MM') from waybill.archives where stage in ('detached', 'dropped') order by month
