-- Schema 1: everything. The tables have the same meaning as in SQLite (src/store/sqlite/schema_*.sql), unless a comment
-- says otherwise. Times are Unix times in seconds by the database's clock; those of a node's lease are timestamps.
--
-- Texts that clients choose are stored as pg_values.py escapes them: PostgreSQL has no NUL in text.

-- The version and the owner of this schema: one row.
CREATE TABLE store (
    one           boolean PRIMARY KEY DEFAULT true CHECK (one),
    service       text NOT NULL DEFAULT 'toold',
    version       integer NOT NULL,        -- of the schema
    readable_from integer NOT NULL,        -- the oldest schema whose nodes can use this one
    chain         text                     -- the name of the audit chain's key; NULL before the first node
);

-- --- nodes -----------------------------------------------------------------------------------------------------------

CREATE TABLE node (
    epoch      text COLLATE "C" PRIMARY KEY,      -- of the process: its call ids begin with it
    name       text NOT NULL,
    address    text NOT NULL DEFAULT '',          -- as it announced itself
    details    text NOT NULL DEFAULT '',
    state      text NOT NULL CHECK (state IN ('live', 'draining', 'dead')),
    until      timestamptz NOT NULL,              -- the end of its lease
    lease_s    double precision NOT NULL,
    commits    bigint NOT NULL DEFAULT 0,         -- the number of its last commit
    started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at   timestamptz                        -- when it became dead
) WITH (fillfactor = 50);

-- Two living nodes have different names; a process that starts has none yet.
CREATE UNIQUE INDEX node_name ON node (name) WHERE state <> 'dead' AND name <> '';

-- Renews the lease of a node for its next commit, in the transaction of that commit. Returns the present time.
CREATE FUNCTION renew_lease(me text, number bigint) RETURNS double precision LANGUAGE plpgsql AS $$
DECLARE
    found_state text;
    found_commits bigint;
BEGIN
    UPDATE node SET until = clock_timestamp() + node.lease_s * interval '1 second', commits = number
    WHERE epoch = me AND state <> 'dead' AND commits = number - 1;
    IF NOT FOUND THEN
        SELECT state, commits INTO found_state, found_commits FROM node WHERE epoch = me;
        IF found_state <> 'dead' AND found_commits < number - 1 THEN
            RAISE EXCEPTION 'commit % is missing: the last one is %', number - 1, found_commits USING ERRCODE = 'TLD02';
        END IF;
        IF found_state <> 'dead' AND found_commits >= number THEN
            RAISE EXCEPTION 'commit % was made before', number USING ERRCODE = 'TLD03';
        END IF;
        RAISE EXCEPTION 'the node is %', coalesce(found_state, 'unknown') USING ERRCODE = 'TLD01';
    END IF;
    RETURN extract(epoch FROM clock_timestamp());
END $$;

-- --- the journal -----------------------------------------------------------------------------------------------------

CREATE TABLE session (
    id        text COLLATE "C" PRIMARY KEY,
    key_hash  bytea NOT NULL UNIQUE,
    principal text NOT NULL,
    label     text NOT NULL,
    toolset   text NOT NULL,
    opened_at double precision NOT NULL,
    seen_at   double precision NOT NULL,
    former    boolean NOT NULL,
    holder    text COLLATE "C"                    -- the epoch of the node that has it in memory; NULL: none
);

CREATE INDEX session_seen_at ON session (seen_at);
CREATE INDEX session_holder ON session (holder) WHERE holder IS NOT NULL;

CREATE TABLE journal (
    number         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session_id     text COLLATE "C" NOT NULL,
    request_key    text COLLATE "C" NOT NULL,
    principal      text NOT NULL,
    tool           text NOT NULL,
    echo_id        boolean NOT NULL,
    arguments_hash bytea NOT NULL,
    local          boolean NOT NULL,
    child          boolean NOT NULL DEFAULT false,
    unstarted      boolean NOT NULL DEFAULT false,
    unfinished     boolean NOT NULL DEFAULT false,
    session_closed boolean NOT NULL DEFAULT false,
    state          text NOT NULL CHECK (state IN ('started', 'done', 'interrupted', 'expired')),
    started_at     double precision NOT NULL,
    ended_at       double precision,
    result_bytes   bigint NOT NULL DEFAULT 0,
    node           text COLLATE "C",              -- the epoch of the node that runs or ran it; NULL: none runs it
    commit_number  bigint,                        -- the commit of that node that wrote the start
    template       text CHECK (template IS NULL OR state = 'started'),      -- JSON: the audit row in case of a crash
    result         bytea CHECK (result IS NULL OR state = 'done'),
    UNIQUE (session_id, request_key)
);

-- For nodes that die.
CREATE INDEX journal_started ON journal (node) WHERE state = 'started';
-- For retention, and for the limits of a principal's results: the oldest of them.
CREATE INDEX journal_ended ON journal (ended_at) WHERE state <> 'started';
CREATE INDEX journal_kept ON journal (principal, ended_at) WHERE state = 'done';
CREATE INDEX journal_unfinished ON journal (principal, ended_at) WHERE unfinished;
CREATE INDEX journal_closed ON journal (number) WHERE session_closed;

-- The size of each principal's results: a row for each node that changed it, so that no node waits for another one's
-- commit; their sum counts. Updated by triggers, so that no statement can miss it.
CREATE TABLE kept (
    principal        text NOT NULL,
    node             text COLLATE "C" NOT NULL,   -- '' for the sum of dead nodes
    bytes            bigint NOT NULL,
    unfinished_bytes bigint NOT NULL,
    PRIMARY KEY (principal, node)
) WITH (fillfactor = 50);

CREATE FUNCTION add_kept(changed_principal text, more bigint, more_unfinished bigint) RETURNS void LANGUAGE sql AS $$
    INSERT INTO kept AS k
    SELECT changed_principal, coalesce(current_setting('toold.node', true), ''), coalesce(more, 0),
           coalesce(more_unfinished, 0)
    WHERE coalesce(more, 0) <> 0 OR coalesce(more_unfinished, 0) <> 0
    ON CONFLICT (principal, node) DO UPDATE SET bytes = k.bytes + excluded.bytes,
                                                unfinished_bytes = k.unfinished_bytes + excluded.unfinished_bytes
$$;

CREATE FUNCTION kept_inserted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM add_kept(NEW.principal, CASE WHEN NEW.unfinished THEN 0 ELSE NEW.result_bytes END,
                     CASE WHEN NEW.unfinished THEN NEW.result_bytes ELSE 0 END);
    RETURN NULL;
END $$;

CREATE FUNCTION kept_updated() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM add_kept(principal, sum(bytes) FILTER (WHERE NOT unfinished)::bigint, sum(bytes) FILTER (WHERE unfinished)::bigint)
    FROM (SELECT principal, unfinished, result_bytes AS bytes FROM new_rows WHERE result_bytes <> 0
          UNION ALL SELECT principal, unfinished, -result_bytes FROM old_rows WHERE result_bytes <> 0) AS changed
    GROUP BY principal;
    RETURN NULL;
END $$;

CREATE FUNCTION kept_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM add_kept(principal, -sum(result_bytes) FILTER (WHERE NOT unfinished)::bigint,
                     -sum(result_bytes) FILTER (WHERE unfinished)::bigint)
    FROM old_rows WHERE result_bytes <> 0 GROUP BY principal;
    RETURN NULL;
END $$;

-- A start has no result, and nearly each inserted row is one; ends come in groups.
CREATE TRIGGER journal_kept_insert AFTER INSERT ON journal
    FOR EACH ROW WHEN (NEW.result_bytes <> 0) EXECUTE FUNCTION kept_inserted();
CREATE TRIGGER journal_kept_update AFTER UPDATE ON journal REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION kept_updated();
CREATE TRIGGER journal_kept_delete AFTER DELETE ON journal REFERENCING OLD TABLE AS old_rows
    FOR EACH STATEMENT EXECUTE FUNCTION kept_deleted();

CREATE TABLE run (
    call_id    text COLLATE "C" PRIMARY KEY,
    principal  text NOT NULL,
    tool       text NOT NULL,
    run        text COLLATE "C" NOT NULL,
    started_at double precision NOT NULL,
    outcome    text,
    stopped_by text,
    created    text COLLATE "C"
);

CREATE INDEX run_started_at ON run (started_at);
CREATE INDEX run_of_run ON run (run);

CREATE TABLE detached (
    number      bigint PRIMARY KEY REFERENCES journal ON DELETE CASCADE,
    call_id     text COLLATE "C" NOT NULL UNIQUE,
    arguments   bytea NOT NULL,
    client      bytea NOT NULL,
    deadline_at double precision NOT NULL,
    expires_at  double precision,
    remaining_s double precision,
    drops_at    double precision,
    dropped     boolean NOT NULL DEFAULT false,
    traceparent text
);

CREATE INDEX detached_expires ON detached (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE input_request (
    number        bigint NOT NULL REFERENCES journal ON DELETE CASCADE,
    id            text COLLATE "C" NOT NULL,
    call_id       text COLLATE "C" NOT NULL,
    position      integer NOT NULL,
    request       bytea,
    decision      bytea,
    decision_hash bytea,
    PRIMARY KEY (number, id)
);

CREATE INDEX input_request_call ON input_request (call_id);

-- A stored result as text, if it is JSON; else NULL.
CREATE FUNCTION json_text(result bytea) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    read_text text := convert_from(result, 'UTF8');
BEGIN
    RETURN CASE WHEN read_text::json IS NOT NULL THEN read_text END;
EXCEPTION WHEN data_exception THEN
    RETURN NULL;
END $$;

-- --- audit rows -----------------------------------------------------------------------------------------------------

-- Audit rows, their chains and sums. Each node that uses the database extends one chain, and only it updates the rows of
-- sums with that chain's number: nodes would wait for each other's commits if they shared these rows.

CREATE TABLE chain (
    number      smallint PRIMARY KEY,       -- from 0
    holder      text COLLATE "C",           -- the epoch of the node that extends it; NULL if none
    chain       text NOT NULL,              -- the name of the chain
    last_seq    bigint NOT NULL,
    last_mac    bytea NOT NULL,
    checkpoints bigint NOT NULL,            -- the number of the last checkpoint
    at          double precision NOT NULL,  -- Unix time in seconds: calls recorded before it are in the chain
    closed      boolean NOT NULL,           -- the node shut down cleanly
    mac         bytea NOT NULL,
    stored      bigint NOT NULL DEFAULT 0   -- the size of its calls in bytes
);

CREATE TABLE call (
    number          bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,   -- about the order in which they ended
    chain           smallint NOT NULL,
    seq             bigint NOT NULL,            -- within the chain, in the order in which they ended
    id              text COLLATE "C" NOT NULL,
    started_at      double precision NOT NULL,  -- Unix time in seconds
    transport       text NOT NULL,
    principal       text NOT NULL,
    session_id      text NOT NULL,
    session_label   text NOT NULL,
    client          text NOT NULL,
    request_id      text NOT NULL,              -- as JSON: 7 and "7" differ
    tool            text NOT NULL,
    outcome         text NOT NULL,              -- 'ok' or the error's code
    message         text,
    executed        text NOT NULL,
    arguments       text,                       -- JSON: their shape, or their content if the operator chose so
    arguments_bytes bigint NOT NULL,
    result_bytes    bigint NOT NULL,
    latency_ms      double precision NOT NULL,
    queue_ms        double precision NOT NULL,
    tool_ms         double precision NOT NULL,
    provider_ms     double precision NOT NULL,
    provider        text,
    model           text,
    simulated       boolean NOT NULL,
    input_tokens    bigint NOT NULL,
    output_tokens   bigint NOT NULL,
    cost_amount     double precision,
    cost_currency   text,
    mac             bytea,                      -- the keyed hash over the call and the mac of the call before
    -- About how much space it takes: its texts, and a constant for everything else.
    bytes           integer NOT NULL GENERATED ALWAYS AS (
        250 + octet_length(id) + octet_length(principal) + octet_length(session_id) + octet_length(session_label)
        + octet_length(client) + octet_length(request_id) + octet_length(tool) + coalesce(octet_length(message), 0)
        + coalesce(octet_length(arguments), 0) + coalesce(octet_length(model), 0)
    ) STORED
);

CREATE UNIQUE INDEX call_chain ON call (chain, seq);
-- For the calls of a day.
CREATE INDEX call_started_at ON call (started_at);

-- Signed statements about calls that are missing from the chain, and about the other chains.
CREATE TABLE checkpoint (
    chain      smallint NOT NULL,
    number     bigint NOT NULL,                   -- from 1, without gaps
    kind       text NOT NULL,
    first_seq  bigint NOT NULL,
    last_seq   bigint NOT NULL,                   -- first_seq - 1 if the calls never had a seq
    calls      bigint,                            -- NULL if unknown
    since      double precision NOT NULL,         -- Unix time in seconds, as until
    until      double precision NOT NULL,
    mac_before bytea NOT NULL,
    mac_after  bytea NOT NULL,
    mac        bytea NOT NULL,
    sent       boolean NOT NULL DEFAULT false,    -- Supabase has the current version
    PRIMARY KEY (chain, number)
);

CREATE INDEX checkpoint_unsent ON checkpoint (chain, number) WHERE NOT sent;

-- The ends of the other chains, of which the last checkpoint 'bound' of a chain has the hash.
CREATE TABLE chain_binding (
    chain smallint PRIMARY KEY,
    ends  text NOT NULL                           -- JSON
);

-- How far the calls of a chain have been sent to Supabase. A call is unsent if its seq is greater than settled_seq.
CREATE TABLE outbox (
    chain        smallint PRIMARY KEY,                  -- inserted when the first call is settled
    settled_seq  bigint NOT NULL,                       -- each call up to it was sent, refused or dropped
    sent         bigint NOT NULL,
    refused      bigint NOT NULL,
    dropped      bigint NOT NULL,                       -- removed by retention before they were sent
    last_sent_at double precision                       -- Unix time in seconds
);

-- Calls that Supabase refused. They stay in the table call until retention removes them from both tables.
CREATE TABLE refused (
    chain      smallint NOT NULL,
    seq        bigint NOT NULL,
    reason     text NOT NULL,
    refused_at double precision NOT NULL,               -- Unix time in seconds
    PRIMARY KEY (chain, seq)
);

-- Sums over all calls ever recorded, which need no scan and outlive their rows. '' means none; calls of tools that do
-- not exist are summed under tool '', or misspelled names would fill the table.
CREATE TABLE call_total (
    chain           smallint NOT NULL,
    principal       text COLLATE "C" NOT NULL,              -- empty: not seen for a long time
    tool            text COLLATE "C" NOT NULL,
    outcome         text COLLATE "C" NOT NULL,
    provider        text COLLATE "C" NOT NULL,
    model           text COLLATE "C" NOT NULL,
    simulated       boolean NOT NULL,
    currency        text COLLATE "C" NOT NULL,
    calls           bigint NOT NULL,
    input_tokens    bigint NOT NULL,
    output_tokens   bigint NOT NULL,
    cost            double precision NOT NULL,
    since           double precision NOT NULL,  -- Unix time of the earliest call
    until           double precision NOT NULL,  -- Unix time of the latest call
    PRIMARY KEY (chain, principal, tool, outcome, provider, model, simulated, currency)
);

-- The spending at vendors, by day.
CREATE TABLE day_spent (
    chain         smallint NOT NULL,
    day           text COLLATE "C" NOT NULL,                -- YYYY-MM-DD in UTC, of the call's end
    principal     text COLLATE "C" NOT NULL,
    tool          text COLLATE "C" NOT NULL,
    agent         text COLLATE "C" NOT NULL,                -- the outermost agent of the call; '' if none
    provider      text COLLATE "C" NOT NULL,
    model         text COLLATE "C" NOT NULL,                -- the catalog's id
    simulated     boolean NOT NULL,
    currency      text COLLATE "C" NOT NULL,                -- '' if the model has no known price
    completions   bigint NOT NULL,
    input_tokens  bigint NOT NULL,
    output_tokens bigint NOT NULL,
    cached_tokens bigint NOT NULL,              -- part of input_tokens
    cost          double precision NOT NULL,
    estimated     bigint NOT NULL,              -- calls of which some token counts are estimates
    PRIMARY KEY (chain, day, principal, tool, agent, provider, model, simulated, currency)
);

CREATE INDEX day_spent_day ON day_spent (day);

-- --- conversations --------------------------------------------------------------------------------------------------

-- Conversations, which calls continue by a continuation id.
CREATE TABLE conversation (
    id          text COLLATE "C" PRIMARY KEY,
    principal   text NOT NULL,                        -- only this principal may continue it
    held_by     text COLLATE "C",                               -- the epoch of the node whose call uses it
    started_at  double precision NOT NULL,            -- Unix times in seconds
    used_at     double precision NOT NULL,
    bytes       bigint NOT NULL,                      -- the size of its state and its turns
    state       text NOT NULL,                        -- JSON, written by tools
    last_number bigint NOT NULL,                      -- the highest number of a turn, which is not used again
    copied      boolean NOT NULL DEFAULT false        -- it has copies, so its end is sent to Supabase
);

-- For retention.
CREATE INDEX conversation_used_at ON conversation (used_at, bytes);
-- For a principal's newest.
CREATE INDEX conversation_principal ON conversation (principal, used_at DESC);

CREATE TABLE turn (
    conversation_id text NOT NULL REFERENCES conversation ON DELETE CASCADE,
    number          bigint NOT NULL,                  -- ascending; the lowest are deleted first
    tokens          bigint NOT NULL,                  -- an estimate
    body            text NOT NULL,                    -- JSON
    PRIMARY KEY (conversation_id, number)
);

-- Copies of conversations that have to be sent to Supabase, if the operator chose to store content.
CREATE TABLE copy (
    number          bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    id              text NOT NULL UNIQUE,       -- the message's id; the conversation's id if it has ended
    conversation_id text NOT NULL,
    principal       text NOT NULL,
    session_id      text,
    started_at      double precision NOT NULL,  -- of the conversation; Unix times in seconds
    at              double precision NOT NULL,  -- of the message, or of the last one if the conversation has ended
    ended_at        double precision,           -- when the conversation was deleted; the columns below are NULL then
    position        bigint,                     -- the turn's number
    call_id         text,
    role            text,
    provider        text,
    model           text,
    content         text,                       -- JSON, unredacted: redacted when it is sent
    bytes           bigint NOT NULL,            -- about the size of the row
    reason          text                        -- why Supabase refused it; NULL while unsent
);

-- For the next copies to send, and their number.
CREATE INDEX copy_waiting ON copy (number) WHERE reason IS NULL;
-- For retention, and for the size of all copies.
CREATE INDEX copy_at ON copy (coalesce(ended_at, at), bytes);

-- Counts of the copies that were sent, refused or dropped, by the chain of the node that did it.
CREATE TABLE copies (
    chain        smallint PRIMARY KEY,
    sent         bigint NOT NULL,
    refused      bigint NOT NULL,
    dropped      bigint NOT NULL,               -- removed by retention before they were sent
    last_sent_at double precision               -- Unix time in seconds
);

-- --- A2A ------------------------------------------------------------------------------------------------------------

-- Tasks of A2A. A task is a detached call as a client of A2A sees it; its id is the call's.
CREATE TABLE a2a_task (
    number     bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    id         text NOT NULL UNIQUE,       -- the call's id
    principal  text NOT NULL,
    agent      text NOT NULL,
    context_id text NOT NULL,              -- as the client knows it
    state      text NOT NULL,              -- of A2A 1.0, as last seen
    changed_at double precision NOT NULL,  -- when it entered the state, Unix time
    ended      boolean NOT NULL,           -- it cannot change
    history    bytea NOT NULL,             -- its messages, JSON
    last_event bigint NOT NULL,            -- the number of its last event
    node       text COLLATE "C" NOT NULL   -- the epoch of the node that changed it last
);

CREATE INDEX a2a_task_of_principal ON a2a_task (principal, agent, changed_at DESC, number DESC);
CREATE INDEX a2a_task_by_change ON a2a_task (changed_at);
CREATE INDEX a2a_task_unfinished ON a2a_task (number) WHERE NOT ended;

-- The events of A2A's tasks, which streams send and repeat.
CREATE TABLE a2a_event (
    task    text NOT NULL,
    number  bigint NOT NULL,       -- within the task, from 1
    partial boolean NOT NULL,      -- a piece of an answer, deleted once the task has ended
    event   bytea NOT NULL,        -- JSON of A2A 1.0
    PRIMARY KEY (task, number)
);

-- The messages that began tasks of A2A. A repeat of the message finds its task.
CREATE TABLE a2a_message (
    key     bytea PRIMARY KEY,         -- the hash of its principal, toolset, agent, context and id
    task    text NOT NULL,             -- the task that it began, which may be deleted by now
    content bytea NOT NULL,            -- the hash of what it says
    at      double precision NOT NULL  -- Unix time in seconds
);

CREATE INDEX a2a_message_by_time ON a2a_message (at);

-- Where clients of A2A want to be notified of a task's events. The events themselves are in a2a_event.
CREATE TABLE a2a_push (
    task     text NOT NULL,
    id       text NOT NULL,           -- of the configuration, unique for its task
    url      text NOT NULL,
    version  text NOT NULL,           -- of A2A, in which notifications are written
    secrets  bytea NOT NULL,          -- the headers that authenticate the daemon, encrypted
    sent     bigint NOT NULL,         -- the last event that was delivered or left out
    attempts bigint NOT NULL,         -- that failed, for the next event
    next_at  double precision NOT NULL,   -- when the next attempt may be made, Unix time
    waiting  boolean NOT NULL,        -- its task has events after sent
    PRIMARY KEY (task, id)
);

CREATE INDEX a2a_push_waiting ON a2a_push (next_at) WHERE waiting;

-- --- registry, credentials, files, results --------------------------------------------------------------------------

-- The entries of the registry that the daemon serves. A prompt has a row for each kept version.
CREATE TABLE registry_entry (
    kind       text COLLATE "C" NOT NULL,
    id         text COLLATE "C" NOT NULL,
    version    bigint NOT NULL,      -- from 1; each change adds one
    content    bytea NOT NULL,       -- JSON
    created_at double precision NOT NULL,   -- of the entry, Unix time
    changed_at double precision NOT NULL,   -- of this version, Unix time
    PRIMARY KEY (kind, id, version)
);

-- Credentials that users gave for services, which the sources of tools send for them.
CREATE TABLE user_credential (
    principal  text COLLATE "C" NOT NULL,
    service    text COLLATE "C" NOT NULL,
    fields     text NOT NULL,        -- the names of its fields, JSON
    changed_at double precision NOT NULL,   -- Unix time
    sealed     bytea NOT NULL,       -- the fields and their values, encrypted
    PRIMARY KEY (principal, service)
);

-- Which principal uploaded which file to a vendor.
CREATE TABLE vendor_file (
    provider    text NOT NULL,
    file_id     text NOT NULL,                  -- the vendor's id
    principal   text NOT NULL,
    uploaded_at double precision NOT NULL,      -- Unix time in seconds
    PRIMARY KEY (provider, file_id)
);

CREATE INDEX vendor_file_owner ON vendor_file (principal, provider);
CREATE INDEX vendor_file_uploaded_at ON vendor_file (uploaded_at);

-- Retained results. Principals and handles are bytes: callers choose them, and not all of their texts are valid here.
CREATE TABLE retained_result (
    number     bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    principal  bytea NOT NULL,
    handle     bytea NOT NULL,
    extension  text NOT NULL,              -- its format
    size       bigint NOT NULL,            -- in bytes
    at         double precision NOT NULL,  -- when it was written, Unix time
    deleted_at double precision,           -- when its content was deleted: the handle stays known for some days
    UNIQUE (principal, handle)
);

-- For retention, and for a principal's newest and oldest.
CREATE INDEX retained_result_kept ON retained_result (principal, at) WHERE deleted_at IS NULL;
CREATE INDEX retained_result_at ON retained_result (at) WHERE deleted_at IS NULL;
CREATE INDEX retained_result_deleted ON retained_result (deleted_at) WHERE deleted_at IS NOT NULL;

CREATE TABLE result_chunk (
    number  bigint NOT NULL REFERENCES retained_result ON DELETE CASCADE,
    place   bigint NOT NULL,               -- of its first byte in the result
    content bytea NOT NULL,
    PRIMARY KEY (number, place)
);

-- Not compressed, so that a part of a chunk is read without the rest.
ALTER TABLE result_chunk ALTER COLUMN content SET STORAGE EXTERNAL;
