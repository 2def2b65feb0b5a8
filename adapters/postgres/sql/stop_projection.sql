-- Stops a projection before an event that it cannot take, if it still is where that was found.
update waybill.projection_checkpoints
set state = 'stopped', error = @error, stream = @stream, stream_id = @stream_id, seq = @seq
where name = @name and state = 'running' and position = @position
