-- Schema 6: a call's id is stored apart from its temporary data, so that it takes little space for the days that it stays;
-- and the size of all audit rows is stored.

ALTER TABLE journal RENAME TO journal_5;

CREATE TABLE journal (
    number         INTEGER PRIMARY KEY,
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
    result_bytes   INTEGER NOT NULL DEFAULT 0,
    UNIQUE (session_id, request_key)
);

-- While a call is started: its audit row in case of a crash, as JSON.
CREATE TABLE template (
    number    INTEGER PRIMARY KEY,
    audit_row TEXT NOT NULL
);

-- The result of a call that is done.
CREATE TABLE result (
    number INTEGER PRIMARY KEY,
    result BLOB NOT NULL
);

INSERT INTO journal
SELECT rowid, session_id, request_key, principal, tool, echo_id, arguments_hash, local, state, session_closed,
       started_at, ended_at, result_bytes
FROM journal_5 ORDER BY rowid;

INSERT INTO template SELECT rowid, audit_row FROM journal_5 WHERE state = 'started' AND audit_row IS NOT NULL;

INSERT INTO result SELECT rowid, result FROM journal_5 WHERE state = 'done' AND result IS NOT NULL;

DROP TABLE journal_5;                       -- with its indexes and triggers

-- For retention, and for calls interrupted by a crash.
CREATE INDEX journal_state ON journal (state, ended_at);
-- For the limit of a principal's results: the oldest of them.
CREATE INDEX journal_kept ON journal (principal, ended_at) WHERE state = 'done';

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

CREATE TRIGGER journal_started_no_more AFTER UPDATE OF state ON journal
WHEN OLD.state = 'started' AND NEW.state != 'started' BEGIN
    DELETE FROM template WHERE number = OLD.number;
END;

CREATE TRIGGER journal_done_no_more AFTER UPDATE OF state ON journal
WHEN OLD.state = 'done' AND NEW.state != 'done' BEGIN
    DELETE FROM result WHERE number = OLD.number;
END;

CREATE TRIGGER journal_deleted AFTER DELETE ON journal BEGIN
    DELETE FROM template WHERE number = OLD.number;
    DELETE FROM result WHERE number = OLD.number;
END;

CREATE TRIGGER journal_ended AFTER UPDATE OF state ON journal WHEN NEW.session_closed AND NEW.state != 'started' BEGIN
    DELETE FROM journal WHERE number = NEW.number;
END;

-- About how much space each call takes in the file: its texts, and a measured constant for everything else.
CREATE VIEW call_size AS
SELECT seq, 162 + length(CAST(
    id || transport || principal || session_id || session_label || client || request_id || tool || outcome || executed
    || coalesce(message, '') || coalesce(arguments, '') || coalesce(provider, '') || coalesce(model, '') AS BLOB
)) AS bytes
FROM call;

-- The size of all calls. Updated by triggers, so that no statement can miss it.
CREATE TABLE calls_size (
    one   INTEGER PRIMARY KEY CHECK (one = 1),   -- one row
    bytes INTEGER NOT NULL
);

INSERT INTO calls_size SELECT 1, coalesce(sum(bytes), 0) FROM call_size;

CREATE TRIGGER call_added AFTER INSERT ON call BEGIN
    UPDATE calls_size SET bytes = bytes + (SELECT bytes FROM call_size WHERE seq = NEW.seq);
END;

CREATE TRIGGER call_removed BEFORE DELETE ON call BEGIN
    UPDATE calls_size SET bytes = bytes - (SELECT bytes FROM call_size WHERE seq = OLD.seq);
END;
