-- Schema 4: the chain of the calls (docs/audit.md), by which it shows whether somebody changed them.

-- The keyed hash over the call and the mac of the one before; NULL for calls that are older than the chain.
ALTER TABLE call ADD COLUMN mac BLOB;

-- Signed notes on calls that are not in the table.
CREATE TABLE checkpoint (
    number     INTEGER PRIMARY KEY,                   -- from 1, without gaps
    kind       TEXT NOT NULL,
    first_seq  INTEGER NOT NULL,
    last_seq   INTEGER NOT NULL,                      -- first_seq - 1 where the calls never had a seq
    calls      INTEGER,                               -- NULL where nobody can know
    since      REAL NOT NULL,                         -- Unix time in seconds, as until
    until      REAL NOT NULL,
    mac_before BLOB NOT NULL,
    mac_after  BLOB NOT NULL,
    mac        BLOB NOT NULL,
    sent       INTEGER NOT NULL                       -- 1 where Supabase has it as it is
);

CREATE INDEX checkpoint_unsent ON checkpoint (number) WHERE NOT sent;

-- The end of the chain, signed apart from it.
CREATE TABLE head (
    one         INTEGER PRIMARY KEY CHECK (one = 1),  -- one row
    chain       TEXT NOT NULL,                        -- the name of the key
    last_seq    INTEGER NOT NULL,
    last_mac    BLOB NOT NULL,
    checkpoints INTEGER NOT NULL,                     -- the number of the last one
    at          REAL NOT NULL,                        -- Unix time in seconds: calls recorded before it are in the chain
    closed      INTEGER NOT NULL,                     -- 1 where the daemon ended in order
    mac         BLOB NOT NULL
);
