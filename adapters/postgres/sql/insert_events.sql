-- Adds records to the log, in order of stream and seq, so that positions rise with
-- seq. A seq that is taken is an error: the sequence is the authority.
insert into waybill.events (tenant, stream, stream_id, seq, name, version, recorded_at, actor, endpoint_id,
    trace_parent, data, hash)
select x.tenant, x.stream::waybill.stream_kind, x.id, x.seq, x.name, x.version, x.recorded_at, x.actor, x.endpoint_id,
    x.trace_parent, x.data, x.hash
from unnest(@e_tenants::text[], @e_streams::text[], @e_ids::uuid[], @e_seqs::int[], @e_names::text[],
    @e_versions::int[], @e_recorded::timestamptz[], @e_actors::text[], @e_endpoints::uuid[], @e_traces::text[],
    @e_data::json[], @e_hashes::bytea[])
  x (tenant, stream, id, seq, name, version, recorded_at, actor, endpoint_id, trace_parent, data, hash)
order by x.id, x.seq
