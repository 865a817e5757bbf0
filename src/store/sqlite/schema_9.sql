-- Schema 9: copies of conversations that have to be sent to Supabase, if the operator chose to store content.

-- The highest number of a turn: the number of a deleted turn is not reused, because its copy has it.
ALTER TABLE conversation ADD COLUMN last_number INTEGER NOT NULL DEFAULT 0;
-- 1 if it has copies, so that its end is sent to Supabase.
ALTER TABLE conversation ADD COLUMN copied INTEGER NOT NULL DEFAULT 0;

UPDATE conversation
SET last_number = (SELECT coalesce(max(number), 0) FROM turn WHERE conversation_id = conversation.id);

CREATE TABLE copy (
    number          INTEGER PRIMARY KEY AUTOINCREMENT,   -- in insertion order; never reused
    id              TEXT NOT NULL UNIQUE,   -- the message's id; the conversation's id if it has ended
    conversation_id TEXT NOT NULL,
    principal       TEXT NOT NULL,
    session_id      TEXT,
    started_at      REAL NOT NULL,          -- of the conversation; Unix times in seconds
    at              REAL NOT NULL,          -- of the message, or of the last one if the conversation has ended
    ended_at        REAL,                   -- when the conversation was deleted; the columns below are NULL then
    position        INTEGER,                -- the turn's number
    call_id         TEXT,
    role            TEXT,
    provider        TEXT,
    model           TEXT,
    content         TEXT,                   -- JSON, unredacted: redacted when it is sent
    bytes           INTEGER NOT NULL,       -- about the size of the row
    reason          TEXT                    -- why Supabase refused it; NULL while unsent
);

-- For the next copies to send, and their number.
CREATE INDEX copy_waiting ON copy (number) WHERE reason IS NULL;
-- For retention, and for the size of all copies.
CREATE INDEX copy_at ON copy (coalesce(ended_at, at), bytes);

-- Counts of the copies that were sent, refused or dropped.
CREATE TABLE copies (
    one          INTEGER PRIMARY KEY CHECK (one = 1),    -- one row
    sent         INTEGER NOT NULL,
    refused      INTEGER NOT NULL,
    dropped      INTEGER NOT NULL,                       -- removed by retention before they were sent
    last_sent_at REAL                                    -- Unix time in seconds
);

INSERT INTO copies VALUES (1, 0, 0, 0, NULL);
