-- Writes down a batch's claim: token, owner, end of lease and what it holds.
insert into waybill.claims (token, worker, lease_until, delivery_ids)
values (@token, @worker, @lease_until, @delivery_ids)
