-- What an auditor asks, as views: who did what and why, what went to whom, what was or is
-- in doubt. They read the log and what seals it, never a projection, so that a rebuild does
-- not touch them; they show no payload byte, no excerpt and no secret, as the log has none.

-- What people and operators do is rare beside the traffic, so this index costs traffic one
-- comparison of a name.
create index events_actions on waybill.events (tenant, position)
    where name in ('delivery.replayed', 'delivery.cancelled', 'delivery.resolved', 'delivery.payload_erased',
        'endpoint.created', 'endpoint.updated', 'endpoint.secret_rotated', 'endpoint.paused', 'endpoint.resumed',
        'endpoint.disabled', 'endpoint.archived', 'admin.tenant_created', 'admin.key_created', 'admin.key_revoked',
        'admin.payload_read', 'admin.message_erased', 'admin.export_made', 'admin.rebuild_done',
        'admin.partition_archived', 'admin.restore_accepted');

-- Doubts are rare too; what this costs traffic is a look at the outcome of each attempt.
create index events_doubts on waybill.events (tenant, position)
    where name = 'delivery.lease_expired' or name = 'delivery.attempted' and data ->> 'outcome' = 'unknown';

-- Records lie on disk about in the order of their times, so a summary of each range of
-- pages finds a period at next to no cost for who appends.
create index events_recorded on waybill.events using brin (recorded_at) with (autosummarize = on);

create view waybill.audit_events with (security_barrier) as
select tenant, position, stream::text as stream, stream_id, seq, name, version, recorded_at, actor, endpoint_id,
       trace_parent, data, encode(hash, 'hex') as hash
from waybill.events;

create view waybill.audit_actions with (security_barrier) as
select tenant, position, recorded_at, actor, data ->> 'on_behalf_of' as on_behalf_of, name as action,
       stream::text as stream, stream_id, seq, endpoint_id, data ->> 'reason' as reason, data
from waybill.events
where name in ('delivery.replayed', 'delivery.cancelled', 'delivery.resolved', 'delivery.payload_erased',
        'endpoint.created', 'endpoint.updated', 'endpoint.secret_rotated', 'endpoint.paused', 'endpoint.resumed',
        'endpoint.disabled', 'endpoint.archived', 'admin.tenant_created', 'admin.key_created', 'admin.key_revoked',
        'admin.payload_read', 'admin.message_erased', 'admin.export_made', 'admin.rebuild_done',
        'admin.partition_archived', 'admin.restore_accepted');

create view waybill.audit_attempts with (security_barrier) as
select tenant, position, recorded_at, actor, stream_id as delivery_id, seq, endpoint_id,
       (data ->> 'attempt')::integer as attempt, (data ->> 'started_at')::timestamptz as started_at,
       lower(substring(data ->> 'url' from '^[a-zA-Z]+://(\[[^]]*\]|[^/:?#]*)')) as host,
       data ->> 'url' as url, data ->> 'outcome' as outcome, data ->> 'reason' as reason,
       (data ->> 'status')::integer as status, (data ->> 'duration_ms')::bigint as duration_ms,
       (data ->> 'superseded')::boolean as superseded
from waybill.events
where name = 'delivery.attempted';

-- Attempts that may have been received though nobody was told so. The second kind is of a
-- cancel that ended a running claim: the event before it, other than reports, is a claim.
create view waybill.audit_doubts with (security_barrier) as
select tenant, position, recorded_at, stream_id as delivery_id, seq, endpoint_id, name as event,
       (data ->> 'attempt')::integer as attempt, coalesce(data ->> 'reason', 'worker_lost') as reason
from waybill.events
where name = 'delivery.lease_expired' or name = 'delivery.attempted' and data ->> 'outcome' = 'unknown'
union all
select c.tenant, c.position, c.recorded_at, c.stream_id, c.seq, c.endpoint_id, c.name, b.attempt, 'cancelled'
from waybill.events c
cross join lateral (
    select p.name, (p.data ->> 'attempt')::integer as attempt
    from waybill.events p
    where p.stream = c.stream and p.stream_id = c.stream_id and p.seq < c.seq
      and p.name not in ('delivery.lease_extended', 'delivery.attempted')
    order by p.seq desc limit 1) b
where c.name = 'delivery.cancelled' and b.name = 'delivery.claimed';

create view waybill.audit_blocks with (security_barrier) as
select b.number, b.first, b.last, b.count, encode(b.root, 'hex') as root, b.sealed_at, h.ledger, h.epoch,
       (select count(*) from waybill.archived_leaves a where a.position between b.first and b.last) as archived
from waybill.blocks b
cross join waybill.ledger_head h;

-- What an auditor's role may do: read these views, and nothing else.
create procedure waybill.grant_auditor(auditor name)
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    execute format('grant usage on schema waybill to %I', auditor);
    execute format('grant select on waybill.audit_events, waybill.audit_actions, waybill.audit_attempts,
        waybill.audit_doubts, waybill.audit_blocks to %I', auditor);
end $$;
revoke all on procedure waybill.grant_auditor(name) from public;
