-- Schema 9: copies of what is said in conversations, on their way to Supabase. Made where the operator has content kept.

-- The number of the last turn that there ever was: no turn gets the number of one that is gone, since its copy has it.
ALTER TABLE conversation ADD COLUMN last_number INTEGER NOT NULL DEFAULT 0;
-- 1 where there are copies of it, so that Supabase is told when it goes.
ALTER TABLE conversation ADD COLUMN copied INTEGER NOT NULL DEFAULT 0;

UPDATE conversation
SET last_number = (SELECT coalesce(max(number), 0) FROM turn WHERE conversation_id = conversation.id);

CREATE TABLE copy (
    number          INTEGER PRIMARY KEY AUTOINCREMENT,   -- in the order in which they came; none is given twice
    id              TEXT NOT NULL UNIQUE,   -- the message's; the conversation's where that has ended
    conversation_id TEXT NOT NULL,
    principal       TEXT NOT NULL,
    session_id      TEXT,
    started_at      REAL NOT NULL,          -- of the conversation; Unix times in seconds
    at              REAL NOT NULL,          -- of the message, or of the last one where the conversation has ended
    ended_at        REAL,                   -- the conversation went; then what follows is NULL
    position        INTEGER,                -- the turn's number
    call_id         TEXT,
    role            TEXT,
    provider        TEXT,
    model           TEXT,
    content         TEXT,                   -- JSON, as it was said: it is redacted when it is sent
    bytes           INTEGER NOT NULL,       -- of the row, about
    reason          TEXT                    -- why Supabase refused it; NULL while it waits
);

-- For what is sent next, and how much that is.
CREATE INDEX copy_waiting ON copy (number) WHERE reason IS NULL;
-- For the retention, and for the sum of what all come to.
CREATE INDEX copy_at ON copy (coalesce(ended_at, at), bytes);

-- What became of the copies that are gone.
CREATE TABLE copies (
    one          INTEGER PRIMARY KEY CHECK (one = 1),    -- one row
    sent         INTEGER NOT NULL,
    refused      INTEGER NOT NULL,
    dropped      INTEGER NOT NULL,                       -- removed by retention before they were sent
    last_sent_at REAL                                    -- Unix time in seconds
);

INSERT INTO copies VALUES (1, 0, 0, 0, NULL);
