-- Copies of conversations: the column and the trigger that a daemon needs to write them. Needs the migrations before it.
-- Safe to apply again, all in their order.

-- When the daemon deleted the conversation, so that it can no longer be continued. The copies stay until toold_forget.
alter table public.toold_conversations add column if not exists ended_at timestamptz;

-- A conversation is sent with each batch that has messages of it: its period only widens, and known values stay, in
-- whatever order batches arrive.
create or replace function public.toold_widen_conversation() returns trigger
language plpgsql set search_path = '' as $$
begin
    new.session_id := coalesce(old.session_id, new.session_id);
    new.title := coalesce(old.title, new.title);
    new.started_at := least(old.started_at, new.started_at);
    new.last_message_at := greatest(old.last_message_at, new.last_message_at);
    new.ended_at := coalesce(old.ended_at, new.ended_at);
    return new;
end
$$;

create or replace trigger toold_widen_conversation before update on public.toold_conversations
    for each row execute function public.toold_widen_conversation();

revoke all on function public.toold_widen_conversation() from public, anon, authenticated;

-- Reloads the schema of PostgREST now rather than at its next start.
notify pgrst, 'reload schema';
