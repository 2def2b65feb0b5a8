-- Keeps what receivers answered to late attempts. One attempt has one exchange.
insert into waybill.exchanges (delivery_id, attempt, salt, excerpt, location, detail)
select x.id, x.attempt, x.salt, x.excerpt, x.location, x.detail
from unnest(@x_ids::uuid[], @x_attempts::int[], @x_salts::bytea[], @x_excerpts::bytea[], @x_locations::bytea[],
    @x_details::bytea[]) x (id, attempt, salt, excerpt, location, detail)
on conflict (delivery_id, attempt) do nothing
