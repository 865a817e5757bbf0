-- Calls that calls make. Needs 20260101000000_toold_audit.sql. Safe to apply again, all in their order.
--
-- A child's id is its parent's, a slash, and its name there: so its row says whose it is, and the chain covers that.

-- The id of the call that made it; null for a caller's own.
alter table public.toold_calls add column if not exists parent_id text
    generated always as (nullif(regexp_replace(id, '(^|/)[^/]*$', ''), '')) stored;

-- What a call did, in the order in which it did it.
create index if not exists toold_calls_by_parent on public.toold_calls (parent_id, started_at)
    where parent_id is not null;

-- Ids of children are longer: four names, of 80 characters at most, behind the caller's own.
alter table public.toold_calls drop constraint if exists toold_calls_id_check;
alter table public.toold_calls add constraint toold_calls_id_check check (length(id) between 1 and 512);
alter table public.toold_provider_calls drop constraint if exists toold_provider_calls_id_check;
alter table public.toold_provider_calls add constraint toold_provider_calls_id_check check (length(id) between 1 and 512);

-- PostgREST learns of the column now rather than at its next start.
notify pgrst, 'reload schema';
