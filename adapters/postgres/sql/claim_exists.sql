-- Whether a claim was written: asked after a commit whose answer was lost.
select exists (select from waybill.claims where token = @id)
