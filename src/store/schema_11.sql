-- Schema 11: detached calls. One that has started and not ended goes on at the next start of the daemon; for that, what
-- it was asked for has to be here, for so long and no longer.

CREATE TABLE detached (
    number      INTEGER PRIMARY KEY,        -- of its row in the journal
    call_id     TEXT NOT NULL UNIQUE,
    arguments   BLOB NOT NULL,              -- JSON, as its caller sent them
    client      BLOB NOT NULL,              -- JSON: who sent them
    deadline_at REAL NOT NULL               -- Unix time in seconds
);

CREATE TRIGGER journal_detached_no_more AFTER UPDATE OF state ON journal
WHEN OLD.state = 'started' AND NEW.state != 'started' BEGIN
    DELETE FROM detached WHERE number = OLD.number;
END;
