-- Schema 5: conversations, which are what a continuation id leads back to.

CREATE TABLE conversation (
    id         TEXT PRIMARY KEY,
    principal  TEXT NOT NULL,                         -- who alone may go on with it
    started_at REAL NOT NULL,                         -- Unix times in seconds
    used_at    REAL NOT NULL,
    bytes      INTEGER NOT NULL,                      -- of its state and its turns
    state      TEXT NOT NULL                          -- JSON, the tools' own
);

-- For the retention, and for the sum of what all come to.
CREATE INDEX conversation_used_at ON conversation (used_at, bytes);

CREATE TABLE turn (
    conversation_id TEXT NOT NULL,
    number          INTEGER NOT NULL,                 -- counts up; the oldest go first
    tokens          INTEGER NOT NULL,                 -- about
    body            TEXT NOT NULL,                    -- JSON
    PRIMARY KEY (conversation_id, number)
);

CREATE TRIGGER conversation_deleted AFTER DELETE ON conversation BEGIN
    DELETE FROM turn WHERE conversation_id = OLD.id;
END;
