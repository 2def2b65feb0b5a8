-- Moves the end of a claim's lease, in the transaction of the event that says so.
update waybill.claims set lease_until = @lease_until where token = @token
