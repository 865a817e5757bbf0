-- Schema 2: the outbox: how far the calls have been sent to Supabase. A call is unsent if its seq is greater than
-- settled_seq; no seq is assigned twice, so this holds even when retention has removed every row.

CREATE TABLE outbox (
    one          INTEGER PRIMARY KEY CHECK (one = 1),   -- one row, inserted when the first call is settled
    settled_seq  INTEGER NOT NULL,                      -- each call up to it was sent, refused or dropped
    sent         INTEGER NOT NULL,
    refused      INTEGER NOT NULL,
    dropped      INTEGER NOT NULL,                      -- removed by retention before they were sent
    last_sent_at REAL                                   -- Unix time in seconds
);

-- Calls that Supabase refused. They stay in the table call until retention removes them from both tables.
CREATE TABLE refused (
    seq        INTEGER PRIMARY KEY,
    reason     TEXT NOT NULL,
    refused_at REAL NOT NULL                            -- Unix time in seconds
);
