-- Removes a claim none of whose deliveries is processing under it any more.
delete from waybill.claims where token = @token
