-- Moves a projection's checkpoint, in the transaction of what it moves over.
update waybill.projection_checkpoints set position = @position where name = @name
