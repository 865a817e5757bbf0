-- The audit trail of toold daemons. Safe to apply again.
--
-- Every table has row-level security without policies, and the grants of the public API's roles are revoked: with the
-- anon key, or as a signed-in user, nothing can be read or written. The daemon uses the service role's key, which bypasses
-- row-level security.

-- One row per ended call; docs/audit.md says what is stored of its arguments.
create table if not exists public.toold_calls (
    id              text primary key check (length(id) between 1 and 200),
    started_at      timestamptz not null,
    transport       text not null,
    principal       text not null,
    session_id      text not null,
    session_label   text not null,
    client          text not null,
    request_id      text not null,           -- as JSON: 7 and "7" differ
    tool            text not null,
    outcome         text not null,           -- 'ok' or the error's code
    message         text,
    executed        text not null check (executed in ('no', 'maybe', 'yes')),
    arguments       jsonb,                   -- their shape, or their content if the operator chose so
    arguments_bytes bigint not null check (arguments_bytes >= 0),
    result_bytes    bigint not null check (result_bytes >= 0),
    latency_ms      double precision not null check (latency_ms >= 0),
    queue_ms        double precision not null check (queue_ms >= 0),
    tool_ms         double precision not null check (tool_ms >= 0),
    provider_ms     double precision not null check (provider_ms >= 0),
    received_at     timestamptz not null default now()
);

-- One row per call that asked a vendor, with the sums of its requests, by list price. Simulated calls are marked, and
-- cost nothing.
create table if not exists public.toold_provider_calls (
    id              text primary key check (length(id) between 1 and 200),
    call_id         text not null,           -- no foreign key: either row may be written or deleted first
    started_at      timestamptz not null,
    principal       text not null,
    provider        text not null,
    model           text,
    simulated       boolean not null,
    outcome         text not null,
    latency_ms      double precision not null check (latency_ms >= 0),
    input_tokens    bigint not null check (input_tokens >= 0),
    output_tokens   bigint not null check (output_tokens >= 0),
    cost_amount     double precision check (cost_amount >= 0),
    cost_currency   text,
    received_at     timestamptz not null default now()
);

-- One row per session that has made a call.
create table if not exists public.toold_sessions (
    id              text primary key check (length(id) between 1 and 200),
    principal       text not null,
    label           text not null,
    client          text not null,
    transport       text not null,
    first_call_at   timestamptz not null,
    last_call_at    timestamptz not null,
    received_at     timestamptz not null default now()
);

-- Indexes for common queries: the newest calls; calls by principal, tool, outcome and session; usage by model. Each index
-- ends in the time, so that its newest rows are read without sorting.
create index if not exists toold_calls_by_time on public.toold_calls (started_at desc);
create index if not exists toold_calls_by_principal on public.toold_calls (principal, started_at desc);
create index if not exists toold_calls_by_tool on public.toold_calls (tool, started_at desc);
create index if not exists toold_calls_by_outcome on public.toold_calls (outcome, started_at desc);
create index if not exists toold_calls_by_session on public.toold_calls (session_id, started_at desc);
create index if not exists toold_provider_calls_by_time on public.toold_provider_calls (started_at desc);
create index if not exists toold_provider_calls_by_call on public.toold_provider_calls (call_id);
create index if not exists toold_provider_calls_by_model on public.toold_provider_calls (model, started_at desc);
create index if not exists toold_provider_calls_by_principal on public.toold_provider_calls (principal, started_at desc);
create index if not exists toold_sessions_by_time on public.toold_sessions (last_call_at desc);
create index if not exists toold_sessions_by_principal on public.toold_sessions (principal, last_call_at desc);

alter table public.toold_calls enable row level security;
alter table public.toold_provider_calls enable row level security;
alter table public.toold_sessions enable row level security;

revoke all on public.toold_calls, public.toold_provider_calls, public.toold_sessions from public, anon, authenticated;
grant select, insert, update, delete
    on public.toold_calls, public.toold_provider_calls, public.toold_sessions to service_role;

-- A session is sent with each batch that has calls of it: its period only widens, in whatever order batches arrive.
create or replace function public.toold_widen_session() returns trigger
language plpgsql set search_path = '' as $$
begin
    new.first_call_at := least(old.first_call_at, new.first_call_at);
    new.last_call_at := greatest(old.last_call_at, new.last_call_at);
    return new;
end
$$;

create or replace trigger toold_widen_session before update on public.toold_sessions
    for each row execute function public.toold_widen_session();

-- Retention: deletes expired rows and returns their number. Run it daily, for example with pg_cron:
--     select cron.schedule('toold', '17 3 * * *', 'select public.toold_forget(90)');
create or replace function public.toold_forget(keep_days integer) returns bigint
language plpgsql set search_path = '' as $$
declare
    before timestamptz := now() - make_interval(days => keep_days);
    removed bigint := 0;
    gone bigint;
begin
    if keep_days is null or keep_days < 1 then
        raise exception 'keep_days must be 1 or more, not %', coalesce(keep_days::text, 'null')
            using errcode = 'invalid_parameter_value';
    end if;
    delete from public.toold_calls where started_at < before;
    get diagnostics gone = row_count;
    removed := removed + gone;
    delete from public.toold_provider_calls where started_at < before;
    get diagnostics gone = row_count;
    removed := removed + gone;
    delete from public.toold_sessions where last_call_at < before;
    get diagnostics gone = row_count;
    return removed + gone;
end
$$;

revoke all on function public.toold_forget(integer) from public, anon, authenticated;
revoke all on function public.toold_widen_session() from public, anon, authenticated;
grant execute on function public.toold_forget(integer) to service_role;

-- Reloads the schema of PostgREST now rather than at its next start.
notify pgrst, 'reload schema';
