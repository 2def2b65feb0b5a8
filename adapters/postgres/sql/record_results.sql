-- Records the results of claims that are believed to be present, without a read
-- before it: the update is its own gate by version and claim token. Adds the events
-- and exchanges of the rows that it changed; returns the ids of the others, of which
-- nothing is written.
with given as (
  select * from unnest(@ids::uuid[], @expected::int[], @owners::uuid[], @states::text[], @versions::int[],
      @attempts::int[], @cycles::int[], @cycle_attempts::int[], @dues::timestamptz[], @tokens::uuid[], @reasons::text[],
      @outcomes::text[], @last_attempts::int[], @unknowns::int[], @proofs::int[], @forced::int[], @held_by::uuid[],
      @erased::boolean[], @updated::timestamptz[], @heads::bytea[])
    g (id, expected, owner, state, version, attempts, cycle, cycle_attempts, due_at, claim_token, failure_reason,
      last_outcome, last_attempt, unknown_attempts, proof, forced_after, held_by, payload_erased, updated_at, head_hash)),
changed as (
  update waybill.deliveries d
  set state = g.state, version = g.version, attempts = g.attempts, cycle = g.cycle, cycle_attempts = g.cycle_attempts,
      due_at = g.due_at, claim_token = g.claim_token, failure_reason = g.failure_reason, last_outcome = g.last_outcome,
      last_attempt = g.last_attempt, unknown_attempts = g.unknown_attempts, proof = g.proof,
      forced_after = g.forced_after, held_by = g.held_by, payload_erased = g.payload_erased,
      updated_at = g.updated_at, head_hash = g.head_hash
  from given g
  where d.id = g.id and d.version = g.expected and d.claim_token = g.owner
  returning d.id),
added as (
  insert into waybill.events (tenant, stream, stream_id, seq, name, version, recorded_at, actor, endpoint_id,
      trace_parent, data, hash)
  select x.tenant, 'delivery', x.id, x.seq, x.name, x.version, x.recorded_at, x.actor, x.endpoint_id,
      x.trace_parent, x.data, x.hash
  from unnest(@e_tenants::text[], @e_ids::uuid[], @e_seqs::int[], @e_names::text[], @e_versions::int[],
      @e_recorded::timestamptz[], @e_actors::text[], @e_endpoints::uuid[], @e_traces::text[], @e_data::json[],
      @e_hashes::bytea[])
    x (tenant, id, seq, name, version, recorded_at, actor, endpoint_id, trace_parent, data, hash)
  where (x.id in (select id from changed)) is true
  order by x.id, x.seq),
kept as (
  insert into waybill.exchanges (delivery_id, attempt, salt, excerpt, location, detail)
  select x.id, x.attempt, x.salt, x.excerpt, x.location, x.detail
  from unnest(@x_ids::uuid[], @x_attempts::int[], @x_salts::bytea[], @x_excerpts::bytea[], @x_locations::bytea[],
      @x_details::bytea[]) x (id, attempt, salt, excerpt, location, detail)
  where (x.id in (select id from changed)) is true)
select g.id from given g where (g.id in (select id from changed)) is not true
