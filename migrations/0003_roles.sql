-- What the application's role may do, and no more: it reads the log and adds to it
-- through the root, column by column, without position. Run again at every migrate.
create procedure waybill.grant_app(app name)
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    execute format('grant usage on schema waybill to %I', app);
    execute format('grant select on all tables in schema waybill to %I', app);
    execute format('grant usage, select on sequence waybill.events_position to %I', app);
    execute format('grant insert (tenant, stream, stream_id, seq, name, version, recorded_at, actor,
        endpoint_id, trace_parent, data, hash) on waybill.events to %I', app);
    execute format('grant insert on waybill.tenants, waybill.admin_heads, waybill.api_keys, waybill.endpoints,
        waybill.endpoint_secrets, waybill.messages, waybill.deliveries, waybill.claims,
        waybill.idempotency_keys, waybill.exchanges, waybill.workers, waybill.rate_limit_counters, waybill.outbox, waybill.blocks,
        waybill.endpoint_health, waybill.outcomes_hourly to %I', app);
    execute format('grant update on waybill.endpoints, waybill.endpoint_secrets, waybill.deliveries,
        waybill.claims, waybill.workers, waybill.rate_limit_counters, waybill.outbox,
        waybill.endpoint_health, waybill.outcomes_hourly, waybill.projection_checkpoints to %I', app);
    execute format('grant update (version, head_hash, last_at) on waybill.admin_heads to %I', app);
    execute format('grant update (blocks, last, sealed_at) on waybill.ledger_head to %I', app);
    execute format('grant update (revoked_at) on waybill.api_keys to %I', app);
    execute format('grant update (erased_at) on waybill.messages to %I', app); -- to lock them
    execute format('grant execute on function waybill.erase(uuid[], uuid[], timestamptz) to %I', app);
    execute format('grant delete on waybill.claims, waybill.workers, waybill.outbox to %I', app);
    execute format('grant execute on function waybill.make_partitions(integer), waybill.accept_restore(bigint, integer) to %I', app);
end $$;
revoke all on procedure waybill.grant_app(name) from public;
