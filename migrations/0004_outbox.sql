-- Where anyone hands in messages in a transaction of their own: the row commits with
-- whatever else that transaction did, and is moved into the log afterwards. A row that
-- is refused stays, with the code of its refusal.
create table waybill.outbox (
    id              bigint generated always as identity primary key,
    tenant          text not null default 'default',
    endpoint_id     uuid, -- null: to every endpoint that wants the event type
    event_type      text not null default '',
    content_type    text not null default 'application/json',
    payload         bytea not null,
    idempotency_key text,
    ordering_key    text,
    not_before      timestamptz,
    created_at      timestamptz not null default now(),
    error           text
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
alter table waybill.outbox alter column payload set storage external;
create index outbox_waiting on waybill.outbox (id) where error is null;
create index outbox_refused on waybill.outbox (id) where error is not null;

-- What a role may do that only hands in messages.
create procedure waybill.grant_outbox(handing_in name)
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    execute format('grant usage on schema waybill to %I', handing_in);
    execute format('grant insert (tenant, endpoint_id, event_type, content_type, payload, idempotency_key, ordering_key,
        not_before) on waybill.outbox to %I', handing_in);
end $$;
revoke all on procedure waybill.grant_outbox(name) from public;
