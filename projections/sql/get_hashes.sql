-- The hashes of records, each named by its stream and seq, in the order of their names.
select coalesce(e.hash, '')
from unnest(@streams::text[], @ids::uuid[], @seqs::int[]) with ordinality g (stream, id, seq, n)
left join waybill.events e on e.stream = g.stream::waybill.stream_kind and e.stream_id = g.id and e.seq = g.seq
order by g.n
