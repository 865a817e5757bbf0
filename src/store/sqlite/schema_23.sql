-- Schema 23: where clients of A2A want to be notified of a task's events. The events themselves are in a2a_event.

CREATE TABLE a2a_push (
    task     TEXT NOT NULL,
    id       TEXT NOT NULL,           -- of the configuration, unique for its task
    url      TEXT NOT NULL,
    version  TEXT NOT NULL,           -- of A2A, in which notifications are written
    secrets  BLOB NOT NULL,           -- the headers that authenticate the daemon, encrypted
    sent     INTEGER NOT NULL,        -- the last event that was delivered or left out
    attempts INTEGER NOT NULL DEFAULT 0,   -- that failed, for the next event
    next_at  REAL NOT NULL DEFAULT 0,      -- when the next attempt may be made, Unix time
    PRIMARY KEY (task, id)
) WITHOUT ROWID;
