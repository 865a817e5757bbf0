-- Tamper evidence, and conversations. Needs 20260101000000_toold_audit.sql. Safe to apply again, both in their order.
--
-- Each daemon chains its calls: a call's mac is a keyed hash over its values and the mac of the call before. The key stays
-- with the daemon, so `toold audit verify --remote` detects rows that were changed, removed, added or moved here. Rows of
-- older daemons have no mac.

alter table public.toold_calls add column if not exists chain text;
alter table public.toold_calls add column if not exists seq bigint check (seq >= 1);   -- counts within the chain
alter table public.toold_calls add column if not exists mac text check (mac ~ '^[0-9a-f]{64}$');

-- The same as the call's, so that both tables can be read in the same order.
alter table public.toold_provider_calls add column if not exists chain text;
alter table public.toold_provider_calls add column if not exists seq bigint check (seq >= 1);

-- Not unique: a daemon that was reset to an older state must be able to send; verification finds both rows.
create index if not exists toold_calls_by_chain on public.toold_calls (chain, seq, id);
create index if not exists toold_provider_calls_by_chain on public.toold_provider_calls (chain, seq, id);

-- Signed statements about calls that are missing from the chain: docs/audit.md has the kinds. toold_forget adds one
-- unsigned row per chain, of kind 'forgotten', up to where it has deleted the chain's calls.
create table if not exists public.toold_checkpoints (
    id              text primary key check (length(id) between 1 and 200),
    chain           text not null,
    number          bigint not null check (number >= 0),
    kind            text not null,
    first_seq       bigint not null,
    last_seq        bigint not null,
    calls           bigint check (calls >= 0),   -- null if unknown
    since           timestamptz not null,
    until           timestamptz not null,
    mac_before      text not null,
    mac_after       text not null,
    mac             text,
    received_at     timestamptz not null default now()
);

create index if not exists toold_checkpoints_by_chain on public.toold_checkpoints (chain, number);

-- Conversations and their messages: copies of the daemon's, only if the operator chose to store content.
create table if not exists public.toold_conversations (
    id              text primary key check (length(id) between 1 and 200),
    principal       text not null,
    session_id      text,
    title           text,
    started_at      timestamptz not null,
    last_message_at timestamptz not null,
    received_at     timestamptz not null default now()
);

create table if not exists public.toold_messages (
    id              text primary key check (length(id) between 1 and 200),
    conversation_id text not null,           -- no foreign key: either row may be written or deleted first
    position        integer not null check (position >= 0),
    call_id         text,                    -- the call that sent or received it
    principal       text not null,
    role            text not null check (role in ('system', 'user', 'assistant', 'tool')),
    content         jsonb not null,
    provider        text,
    model           text,
    created_at      timestamptz not null,
    received_at     timestamptz not null default now()
);

create index if not exists toold_conversations_by_time on public.toold_conversations (last_message_at desc);
create index if not exists toold_conversations_by_principal on public.toold_conversations (principal, last_message_at desc);
create index if not exists toold_conversations_by_session on public.toold_conversations (session_id, last_message_at desc);
create index if not exists toold_messages_by_conversation on public.toold_messages (conversation_id, position);
create index if not exists toold_messages_by_call on public.toold_messages (call_id);
create index if not exists toold_messages_by_time on public.toold_messages (created_at desc);

alter table public.toold_checkpoints enable row level security;
alter table public.toold_conversations enable row level security;
alter table public.toold_messages enable row level security;

revoke all on public.toold_checkpoints, public.toold_conversations, public.toold_messages
    from public, anon, authenticated;
grant select, insert, update, delete
    on public.toold_checkpoints, public.toold_conversations, public.toold_messages to service_role;

-- Retention, as before: deletes expired rows and returns their number. Of a chain, only the beginning is deleted, up to
-- the first call that is recent enough, so that the rest has no gaps. A call's age counts from its arrival here too, so
-- that a wrong clock does not keep it for ever. Checkpoints stay: they are few, and say that there were calls.
create or replace function public.toold_forget(keep_days integer) returns bigint
language plpgsql set search_path = '' as $$
declare
    before timestamptz := now() - make_interval(days => keep_days);
    removed bigint := 0;
    gone bigint;
    one_chain text;
    first_kept bigint;
    ending record;
begin
    if keep_days is null or keep_days < 1 then
        raise exception 'keep_days must be 1 or more, not %', coalesce(keep_days::text, 'null')
            using errcode = 'invalid_parameter_value';
    end if;
    for one_chain in select distinct chain from public.toold_calls where chain is not null loop
        select min(seq) into first_kept from public.toold_calls
            where chain = one_chain and least(started_at, received_at) >= before;
        select seq, mac into ending from public.toold_calls
            where chain = one_chain and (first_kept is null or seq < first_kept) order by seq desc limit 1;
        continue when not found;
        delete from public.toold_provider_calls where chain = one_chain and seq <= ending.seq;
        get diagnostics gone = row_count;
        removed := removed + gone;
        delete from public.toold_calls where chain = one_chain and seq <= ending.seq;
        get diagnostics gone = row_count;
        removed := removed + gone;
        insert into public.toold_checkpoints as known
            (id, chain, number, kind, first_seq, last_seq, calls, since, until, mac_before, mac_after)
            values (one_chain || '-forgotten', one_chain, 0, 'forgotten', 1, ending.seq, gone, now(), now(), '',
                coalesce(ending.mac, ''))
            on conflict (id) do update set last_seq = excluded.last_seq, calls = known.calls + excluded.calls,
                until = excluded.until, mac_after = excluded.mac_after;
    end loop;
    delete from public.toold_calls where chain is null and started_at < before;
    get diagnostics gone = row_count;
    removed := removed + gone;
    delete from public.toold_provider_calls where chain is null and started_at < before;
    get diagnostics gone = row_count;
    removed := removed + gone;
    delete from public.toold_messages where created_at < before;
    get diagnostics gone = row_count;
    removed := removed + gone;
    delete from public.toold_conversations where last_message_at < before;
    get diagnostics gone = row_count;
    removed := removed + gone;
    delete from public.toold_sessions where last_call_at < before;
    get diagnostics gone = row_count;
    return removed + gone;
end
$$;

revoke all on function public.toold_forget(integer) from public, anon, authenticated;
grant execute on function public.toold_forget(integer) to service_role;

-- Reloads the schema of PostgREST now rather than at its next start.
notify pgrst, 'reload schema';
