-- Baseline records, as scripts/baseline_collection/upload.py sends them. Needs no other migration. Safe to apply again.
--
-- Access as for the audit tables: row-level security without policies, and grants for the service role only. toold_forget
-- does not touch them: baselines are stored for comparison. Deleting a run deletes its calls and summaries.

-- One row per run; docs/baselines.md says what each figure means.
create table if not exists public.toold_baseline_runs (
    id              text primary key check (length(id) between 1 and 200),
    format          integer not null check (format >= 1),
    started_at      timestamptz not null,
    finished_at     timestamptz,
    complete        boolean not null,        -- false if the run was interrupted
    simulated       boolean not null,        -- true if no provider was asked
    daemon          text not null,           -- name and version
    commit          text,
    environment     jsonb not null,
    configuration   jsonb not null,
    skipped         jsonb not null,          -- tools that were not called, and why
    received_at     timestamptz not null default now()
);

-- One row per call.
create table if not exists public.toold_baseline_calls (
    run_id          text not null references public.toold_baseline_runs (id) on delete cascade,
    number          integer not null check (number >= 0),    -- its position in the record
    tool_name       text not null,
    load            text not null,           -- in words: '8 at once', '200 a second'
    iteration       integer not null check (iteration >= 1),
    status          text not null check (status in ('success', 'error')),
    started_at      timestamptz not null,
    latency_ms      double precision not null check (latency_ms >= 0),
    late_ms         double precision not null check (late_ms >= 0),
    daemon_ms       double precision check (daemon_ms >= 0),
    queue_ms        double precision check (queue_ms >= 0),
    tool_ms         double precision check (tool_ms >= 0),
    provider_ms     double precision check (provider_ms >= 0),
    model           text,
    input_tokens    bigint check (input_tokens >= 0),
    output_tokens   bigint check (output_tokens >= 0),
    cost_amount     double precision,
    cost_currency   text,
    output_bytes    bigint not null check (output_bytes >= 0),
    error_code      text,
    simulated       boolean not null,
    primary key (run_id, number)
);

-- One row per tool and load.
create table if not exists public.toold_baseline_summaries (
    run_id          text not null references public.toold_baseline_runs (id) on delete cascade,
    tool_name       text not null,
    load            text not null,
    calls           integer not null check (calls >= 1),
    successes       integer not null check (successes between 0 and calls),
    p50_ms          double precision,
    p50_low_ms      double precision,        -- the interval of 95 %
    p50_high_ms     double precision,
    p90_ms          double precision,
    p95_ms          double precision,
    p99_ms          double precision,
    mean_ms         double precision,
    throughput_per_s double precision,
    summary         jsonb not null,          -- all of it, as in the record
    primary key (run_id, tool_name, load)
);

-- Indexes for common queries: the newest runs, and one tool over time.
create index if not exists toold_baseline_runs_by_time on public.toold_baseline_runs (started_at desc);
create index if not exists toold_baseline_summaries_by_tool on public.toold_baseline_summaries (tool_name, load);

alter table public.toold_baseline_runs enable row level security;
alter table public.toold_baseline_calls enable row level security;
alter table public.toold_baseline_summaries enable row level security;

revoke all on public.toold_baseline_runs, public.toold_baseline_calls, public.toold_baseline_summaries
    from public, anon, authenticated;
grant select, insert, update, delete
    on public.toold_baseline_runs, public.toold_baseline_calls, public.toold_baseline_summaries to service_role;

-- Reloads the schema of PostgREST now rather than at its next start.
notify pgrst, 'reload schema';
