-- Schema 3: the journal, which survives disconnects and crashes: resumable sessions, and calls that are not local, from
-- before they start until their ids expire.

CREATE TABLE session (
    id        TEXT PRIMARY KEY,
    key_hash  BLOB NOT NULL UNIQUE,         -- the hash of its resume key, which is not stored
    principal TEXT NOT NULL,
    label     TEXT NOT NULL,
    opened_at REAL NOT NULL,                -- Unix times in seconds
    seen_at   REAL NOT NULL
);

-- For retention.
CREATE INDEX session_seen_at ON session (seen_at);

CREATE TABLE journal (
    session_id     TEXT NOT NULL,           -- also of a client without a row in session
    request_key    TEXT NOT NULL,
    principal      TEXT NOT NULL,
    tool           TEXT NOT NULL,
    echo_id        INTEGER NOT NULL,
    arguments_hash BLOB NOT NULL,
    local          INTEGER NOT NULL,        -- the stored result of a local call, which was not journalled
    state          TEXT NOT NULL CHECK (state IN ('started', 'done', 'interrupted', 'expired')),
    session_closed INTEGER NOT NULL DEFAULT 0,   -- its session was closed: deleted when it ends
    started_at     REAL NOT NULL,           -- Unix times in seconds
    ended_at       REAL,
    audit_row      TEXT,                    -- JSON, while started: the audit row in case of a crash
    result_bytes   INTEGER NOT NULL DEFAULT 0,
    result         BLOB,                    -- while done. The last column, so that the others are read without it
    PRIMARY KEY (session_id, request_key)
);

-- For retention, and for calls interrupted by a crash.
CREATE INDEX journal_state ON journal (state, ended_at);
-- For the limit of a principal's results: the oldest of them.
CREATE INDEX journal_kept ON journal (principal, ended_at) WHERE state = 'done';

-- The size of each principal's results. Updated by triggers, so that no statement can miss it.
CREATE TABLE kept (
    principal TEXT PRIMARY KEY,
    bytes     INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TRIGGER journal_kept_insert AFTER INSERT ON journal WHEN NEW.result_bytes BEGIN
    INSERT INTO kept (principal, bytes) VALUES (NEW.principal, NEW.result_bytes)
    ON CONFLICT DO UPDATE SET bytes = bytes + excluded.bytes;
END;

CREATE TRIGGER journal_kept_update AFTER UPDATE ON journal WHEN NEW.result_bytes != OLD.result_bytes BEGIN
    INSERT INTO kept (principal, bytes) VALUES (NEW.principal, NEW.result_bytes - OLD.result_bytes)
    ON CONFLICT DO UPDATE SET bytes = bytes + excluded.bytes;
END;

CREATE TRIGGER journal_kept_delete AFTER DELETE ON journal WHEN OLD.result_bytes BEGIN
    INSERT INTO kept (principal, bytes) VALUES (OLD.principal, -OLD.result_bytes)
    ON CONFLICT DO UPDATE SET bytes = bytes + excluded.bytes;
END;

CREATE TRIGGER journal_ended AFTER UPDATE OF state ON journal WHEN NEW.session_closed AND NEW.state != 'started' BEGIN
    DELETE FROM journal WHERE session_id = NEW.session_id AND request_key = NEW.request_key;
END;
