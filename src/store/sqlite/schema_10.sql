-- Schema 10: child calls. A child is in the journal under its parent's run instead of a session, and outlives the
-- session: a later call of the same principal may resume the run without repeating its calls.

ALTER TABLE journal ADD COLUMN child INTEGER NOT NULL DEFAULT 0;   -- session_id is a run, request_key the child's name

CREATE TABLE run (
    call_id    TEXT PRIMARY KEY,           -- of an orchestration call that is not a child call
    principal  TEXT NOT NULL,              -- only this principal may resume it
    tool       TEXT NOT NULL,
    run        TEXT NOT NULL,              -- the run of its children: its own id, or the run that it resumed
    started_at REAL NOT NULL               -- Unix time in seconds
) WITHOUT ROWID;

-- For retention.
CREATE INDEX run_started_at ON run (started_at);
