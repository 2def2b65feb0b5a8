-- The schema's version: the last migration that was applied.
select max(version_id) from waybill.goose_db_version where is_applied having max(version_id) is not null
