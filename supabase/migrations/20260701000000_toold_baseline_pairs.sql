-- A clearer name for the run that was collected alternately with this one. Needs 20260601000000_toold_baseline_runs.sql.
-- Safe to apply again, all in their order: that migration adds `beside` again, without values.

alter table public.toold_baseline_runs add column if not exists paired_run text;
update public.toold_baseline_runs set paired_run = beside where paired_run is null and beside is not null;
alter table public.toold_baseline_runs drop column beside;
