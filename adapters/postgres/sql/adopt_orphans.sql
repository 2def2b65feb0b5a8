-- Gives deliveries that are processing under a token that no claim has a claim that
-- has run out, so that recovery ends them. There is no index for this question: it is
-- asked at start, after a restore and by doctor.
insert into waybill.claims (token, worker, lease_until, delivery_ids)
select d.claim_token, 'unknown', now() - interval '1 second', array_agg(d.id order by d.id)
from waybill.deliveries d
where d.claim_token is not null
  and not exists (select from waybill.claims c where c.token = d.claim_token)
group by d.claim_token
on conflict (token) do nothing
