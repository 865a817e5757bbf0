-- Schema 1: audit rows of ended calls, and sums over all calls.

CREATE TABLE call (
    seq             INTEGER PRIMARY KEY,   -- in the order in which they ended
    id              TEXT NOT NULL,
    started_at      REAL NOT NULL,         -- Unix time in seconds
    transport       TEXT NOT NULL,
    principal       TEXT NOT NULL,
    session_id      TEXT NOT NULL,
    session_label   TEXT NOT NULL,
    client          TEXT NOT NULL,
    request_id      TEXT NOT NULL,         -- as JSON: 7 and "7" differ
    tool            TEXT NOT NULL,
    outcome         TEXT NOT NULL,         -- 'ok' or the error's code
    message         TEXT,
    executed        TEXT NOT NULL,
    arguments       TEXT,                  -- JSON: their shape, or their content if the operator chose so
    arguments_bytes INTEGER NOT NULL,
    result_bytes    INTEGER NOT NULL,
    latency_ms      REAL NOT NULL,
    queue_ms        REAL NOT NULL,
    tool_ms         REAL NOT NULL,
    provider_ms     REAL NOT NULL,
    provider        TEXT,
    model           TEXT,
    simulated       INTEGER NOT NULL,
    input_tokens    INTEGER NOT NULL,
    output_tokens   INTEGER NOT NULL,
    cost_amount     REAL,
    cost_currency   TEXT
);

-- For retention by age.
CREATE INDEX call_started_at ON call (started_at);

-- Updated by the writer, so that sums need no scan and outlive their rows. '' means none; calls of tools that do not
-- exist are summed under tool '', or misspelled names would fill the table.
CREATE TABLE call_total (
    tool            TEXT NOT NULL,
    outcome         TEXT NOT NULL,
    provider        TEXT NOT NULL,
    model           TEXT NOT NULL,
    simulated       INTEGER NOT NULL,
    currency        TEXT NOT NULL,
    calls           INTEGER NOT NULL,
    input_tokens    INTEGER NOT NULL,
    output_tokens   INTEGER NOT NULL,
    cost            REAL NOT NULL,
    since           REAL NOT NULL,         -- Unix time of the earliest call
    PRIMARY KEY (tool, outcome, provider, model, simulated, currency)
) WITHOUT ROWID;
