-- Schema 10: the calls that calls make. A child stands in the journal under its parent's run instead of a session, and
-- outlives the session: a later call of the same principal may take the run up, and need not make the same calls again.

ALTER TABLE journal ADD COLUMN child INTEGER NOT NULL DEFAULT 0;   -- session_id is a run, request_key the child's name

CREATE TABLE run (
    call_id    TEXT PRIMARY KEY,           -- of a call that makes calls, and that no call made
    principal  TEXT NOT NULL,              -- who alone may take it up
    tool       TEXT NOT NULL,
    run        TEXT NOT NULL,              -- what its children are known under: its own id, or the run that it took up
    started_at REAL NOT NULL               -- Unix time in seconds
) WITHOUT ROWID;

-- For the retention.
CREATE INDEX run_started_at ON run (started_at);
