-- Schema 13: the sums of all calls are separate for each principal. Earlier sums have no principal; they count for the
-- operator only.

CREATE TABLE principal_total (
    principal       TEXT NOT NULL,         -- empty: unknown, or not seen for a long time
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
    until           REAL NOT NULL,         -- Unix time of the latest call
    PRIMARY KEY (principal, tool, outcome, provider, model, simulated, currency)
) WITHOUT ROWID;

INSERT INTO principal_total
SELECT '', tool, outcome, provider, model, simulated, currency, calls, input_tokens, output_tokens, cost, since, since
FROM call_total;

DROP TABLE call_total;
ALTER TABLE principal_total RENAME TO call_total;
