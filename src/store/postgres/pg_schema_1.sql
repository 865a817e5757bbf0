-- Schema 1: everything. The tables mean what those of SQLite mean (src/store/sqlite/schema_*.sql), except where a comment
-- says otherwise. Times are Unix times in seconds by the database's clock; those of a node's lease are timestamps.
--
-- Texts that clients choose are stored as pg_values.py escapes them: PostgreSQL has no NUL in text.

-- What this schema is, and whose: one row.
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

-- --- audit rows ------------------------------------------------------------------------------------------------------

CREATE TABLE call (
    seq             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id              text COLLATE "C" NOT NULL,
    started_at      double precision NOT NULL,
    transport       text NOT NULL,
    principal       text NOT NULL,
    session_id      text NOT NULL,
    session_label   text NOT NULL,
    client          text NOT NULL,
    request_id      text NOT NULL,
    tool            text NOT NULL,
    outcome         text NOT NULL,
    message         text,
    executed        text NOT NULL,
    arguments       text,
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
    cost_currency   text
);

CREATE INDEX call_started_at ON call (started_at);
