-- Schema 5: conversations, which calls continue by a continuation id.

CREATE TABLE conversation (
    id         TEXT PRIMARY KEY,
    principal  TEXT NOT NULL,                         -- only this principal may continue it
    started_at REAL NOT NULL,                         -- Unix times in seconds
    used_at    REAL NOT NULL,
    bytes      INTEGER NOT NULL,                      -- the size of its state and its turns
    state      TEXT NOT NULL                          -- JSON, written by tools
);

-- For retention, and for the size of all conversations.
CREATE INDEX conversation_used_at ON conversation (used_at, bytes);

CREATE TABLE turn (
    conversation_id TEXT NOT NULL,
    number          INTEGER NOT NULL,                 -- ascending; the lowest are deleted first
    tokens          INTEGER NOT NULL,                 -- an estimate
    body            TEXT NOT NULL,                    -- JSON
    PRIMARY KEY (conversation_id, number)
);

CREATE TRIGGER conversation_deleted AFTER DELETE ON conversation BEGIN
    DELETE FROM turn WHERE conversation_id = OLD.id;
END;
