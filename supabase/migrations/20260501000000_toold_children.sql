-- Child calls. Needs 20260101000000_toold_audit.sql. Safe to apply again, all in their order.
--
-- A child's id is its parent's id, a slash, and its name: so its row names its parent, and the chain covers that.

-- The id of its parent; null for other calls.
alter table public.toold_calls add column if not exists parent_id text
    generated always as (nullif(regexp_replace(id, '(^|/)[^/]*$', ''), '')) stored;

-- The children of a call, in order.
create index if not exists toold_calls_by_parent on public.toold_calls (parent_id, started_at)
    where parent_id is not null;

-- Ids of children are longer: up to four names of 80 characters each after the id of the first parent.
alter table public.toold_calls drop constraint if exists toold_calls_id_check;
alter table public.toold_calls add constraint toold_calls_id_check check (length(id) between 1 and 512);
alter table public.toold_provider_calls drop constraint if exists toold_provider_calls_id_check;
alter table public.toold_provider_calls add constraint toold_provider_calls_id_check check (length(id) between 1 and 512);

-- Reloads the schema of PostgREST now rather than at its next start.
notify pgrst, 'reload schema';
