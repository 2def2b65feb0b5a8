-- Hands in one message, in whatever transaction this runs.
insert into waybill.outbox (tenant, endpoint_id, event_type, content_type, payload, idempotency_key, ordering_key, not_before)
values ($1, $2::uuid, $3, $4, $5, $6, $7, $8)
