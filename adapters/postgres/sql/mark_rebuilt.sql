-- Notes that a projection has been rebuilt, in which version and up to where.
insert into waybill.projection_checkpoints (name, version, position, rebuilt_at)
values (@name, @version, @position, clock_timestamp())
on conflict (name) do update
set version = excluded.version, position = excluded.position, rebuilt_at = excluded.rebuilt_at, state = 'running',
    error = null, stream = null, stream_id = null, seq = null
