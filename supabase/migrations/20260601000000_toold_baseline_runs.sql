-- How far a baseline's run can be trusted. Needs 20260401000000_toold_baselines.sql. Safe to apply again, all in their order.

-- The share of it in which something waited for a CPU.
alter table public.toold_baseline_runs add column if not exists contention double precision
    check (contention between 0 and 1);
-- The run that was collected turn by turn with this one.
alter table public.toold_baseline_runs add column if not exists beside text;
