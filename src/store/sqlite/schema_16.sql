-- Schema 16: the store's clock, which journal.ended_at, session.opened_at and session.seen_at are times of. It begins with
-- the latest of them.

CREATE TABLE store_clock (
    one INTEGER PRIMARY KEY CHECK (one = 1),   -- one row, once it was saved
    at  REAL NOT NULL                          -- in seconds
);
