-- Keeps the bytes of new messages.
insert into waybill.messages (id, tenant, event_type, content_type, payload, salt, commitment, trace_parent,
    delivery_ids, created_at)
select m.id, m.tenant, m.event_type, m.content_type, m.payload, m.salt, m.commitment, m.trace_parent,
    array(select d.id from unnest(@d_ids::uuid[], @d_messages::uuid[]) d (id, message) where d.message = m.id order by d.id),
    @now
from unnest(@m_ids::uuid[], @m_tenants::text[], @m_event_types::text[], @m_content_types::text[], @m_payloads::bytea[],
    @m_salts::bytea[], @m_commitments::bytea[], @m_traces::text[])
  m (id, tenant, event_type, content_type, payload, salt, commitment, trace_parent)
