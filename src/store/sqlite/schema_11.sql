-- Schema 11: detached calls. A detached call that has started and not ended resumes at the next start of the daemon, so
-- its request is stored until it ends.

CREATE TABLE detached (
    number      INTEGER PRIMARY KEY,        -- the number of its row in the journal
    call_id     TEXT NOT NULL UNIQUE,
    arguments   BLOB NOT NULL,              -- JSON, as the caller sent them
    client      BLOB NOT NULL,              -- JSON: the client that sent them
    deadline_at REAL NOT NULL               -- Unix time in seconds
);

CREATE TRIGGER journal_detached_no_more AFTER UPDATE OF state ON journal
WHEN OLD.state = 'started' AND NEW.state != 'started' BEGIN
    DELETE FROM detached WHERE number = OLD.number;
END;
