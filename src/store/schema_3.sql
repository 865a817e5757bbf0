-- Schema 3: the journal, which is what outlives a connection and a crash: sessions that can be come back to, and calls
-- that are not local, from before they start until their ids need not be known any more.

CREATE TABLE session (
    id        TEXT PRIMARY KEY,
    key_hash  BLOB NOT NULL UNIQUE,         -- of the key that its client comes back with, which itself is nowhere
    principal TEXT NOT NULL,
    label     TEXT NOT NULL,
    opened_at REAL NOT NULL,                -- Unix times in seconds
    seen_at   REAL NOT NULL
);

-- For the retention.
CREATE INDEX session_seen_at ON session (seen_at);

CREATE TABLE journal (
    session_id     TEXT NOT NULL,           -- of a plain client's too, which has no row in session
    request_key    TEXT NOT NULL,
    principal      TEXT NOT NULL,
    tool           TEXT NOT NULL,
    echo_id        INTEGER NOT NULL,
    arguments_hash BLOB NOT NULL,
    local          INTEGER NOT NULL,        -- an answer that was stored for its client; such a call was never journalled
    state          TEXT NOT NULL CHECK (state IN ('started', 'done', 'interrupted', 'expired')),
    session_closed INTEGER NOT NULL DEFAULT 0,   -- nobody can come back for it: it goes when it ends
    started_at     REAL NOT NULL,           -- Unix times in seconds
    ended_at       REAL,
    audit_row      TEXT,                    -- JSON, while started: the row to add should a crash come
    result_bytes   INTEGER NOT NULL DEFAULT 0,
    result         BLOB,                    -- while done. The last column, so that what is before is read without it
    PRIMARY KEY (session_id, request_key)
);

-- For the retention, and for what a crash left started.
CREATE INDEX journal_state ON journal (state, ended_at);
-- For the bound on a principal's results: the oldest of them.
CREATE INDEX journal_kept ON journal (principal, ended_at) WHERE state = 'done';

-- What the results of each principal come to. Kept by triggers, so that no statement can forget it.
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
