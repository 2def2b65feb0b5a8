-- Where every tenant's administrative stream ends: for verification.
select stream_id, version, head_hash from waybill.admin_heads order by stream_id
