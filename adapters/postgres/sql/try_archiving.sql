-- Whether this session is now the one that archives; a rebuild must not run beside it.
select pg_try_advisory_lock(hashtextextended('waybill.archive', 0))
