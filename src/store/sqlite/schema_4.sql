-- Schema 4: the audit chain (docs/audit.md), which makes changes to audit rows detectable.

-- The keyed hash over the call and the mac of the call before; NULL for calls that are older than the chain.
ALTER TABLE call ADD COLUMN mac BLOB;

-- Signed statements about calls that are missing from the table.
CREATE TABLE checkpoint (
    number     INTEGER PRIMARY KEY,                   -- from 1, without gaps
    kind       TEXT NOT NULL,
    first_seq  INTEGER NOT NULL,
    last_seq   INTEGER NOT NULL,                      -- first_seq - 1 if the calls never had a seq
    calls      INTEGER,                               -- NULL if unknown
    since      REAL NOT NULL,                         -- Unix time in seconds, as until
    until      REAL NOT NULL,
    mac_before BLOB NOT NULL,
    mac_after  BLOB NOT NULL,
    mac        BLOB NOT NULL,
    sent       INTEGER NOT NULL                       -- 1 if Supabase has the current version
);

CREATE INDEX checkpoint_unsent ON checkpoint (number) WHERE NOT sent;

-- The end of the chain, signed separately.
CREATE TABLE head (
    one         INTEGER PRIMARY KEY CHECK (one = 1),  -- one row
    chain       TEXT NOT NULL,                        -- the name of the chain
    last_seq    INTEGER NOT NULL,
    last_mac    BLOB NOT NULL,
    checkpoints INTEGER NOT NULL,                     -- the number of the last checkpoint
    at          REAL NOT NULL,                        -- Unix time in seconds: calls recorded before it are in the chain
    closed      INTEGER NOT NULL,                     -- 1 if the daemon shut down cleanly
    mac         BLOB NOT NULL
);
