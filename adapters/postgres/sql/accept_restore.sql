-- Begins a new epoch above another and beyond a position, and returns it.
select waybill.accept_restore(@beyond::bigint, @above::int)
