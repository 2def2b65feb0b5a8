-- The months whose deliveries have left the ledger, or are about to.
select to_char(month, 'YYYY-MM') from waybill.archives where stage in ('cleared', 'detached', 'dropped') order by month
