-- The reliability of a baseline's run. Needs 20260401000000_toold_baselines.sql. Safe to apply again, all in their order.

-- The share of its time in which a process waited for a CPU.
alter table public.toold_baseline_runs add column if not exists contention double precision
    check (contention between 0 and 1);
-- The run that was collected alternately with this one.
alter table public.toold_baseline_runs add column if not exists beside text;
