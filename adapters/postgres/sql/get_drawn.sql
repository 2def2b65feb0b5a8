-- The last position that was drawn; a fresh sequence says 1 and has drawn none.
select case when is_called then last_value else 0 end from waybill.events_position
