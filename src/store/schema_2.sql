-- Schema 2: the outbox, which is how far the calls have been sent to Supabase. A call is unsent where its seq is past
-- settled_seq; no seq is given twice, so that this holds when retention has removed every row.

CREATE TABLE outbox (
    one          INTEGER PRIMARY KEY CHECK (one = 1),   -- one row, made when the first call is settled
    settled_seq  INTEGER NOT NULL,                      -- up to here each call was sent, refused or dropped
    sent         INTEGER NOT NULL,
    refused      INTEGER NOT NULL,
    dropped      INTEGER NOT NULL,                      -- removed by retention before they were sent
    last_sent_at REAL                                   -- Unix time in seconds
);

-- Calls that Supabase does not take. They stay in the table call until retention removes them there and here.
CREATE TABLE refused (
    seq        INTEGER PRIMARY KEY,
    reason     TEXT NOT NULL,
    refused_at REAL NOT NULL                            -- Unix time in seconds
);
