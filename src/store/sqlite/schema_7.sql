-- Schema 7: what was spent at the vendors, by day. Written in the transaction of each call's end, so that no restart or
-- crash counts a call twice.

CREATE TABLE day_spent (
    day           TEXT NOT NULL,             -- YYYY-MM-DD in UTC, of the call's end
    principal     TEXT NOT NULL,
    tool          TEXT NOT NULL,
    provider      TEXT NOT NULL,
    model         TEXT NOT NULL,             -- the catalog's id
    simulated     INTEGER NOT NULL,
    currency      TEXT NOT NULL,             -- '' if the model has no known price
    completions   INTEGER NOT NULL,
    input_tokens  INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL,          -- part of input_tokens
    cost          REAL NOT NULL,
    estimated     INTEGER NOT NULL,          -- calls of which some token counts are estimates
    PRIMARY KEY (day, principal, tool, provider, model, simulated, currency)
) WITHOUT ROWID;

-- From the audit rows, which have one model each and no number of completions.
INSERT INTO day_spent
SELECT date(started_at + latency_ms / 1000, 'unixepoch'), principal, tool, provider, model, simulated,
       coalesce(cost_currency, ''), count(*), sum(input_tokens), sum(output_tokens), 0, total(cost_amount), 0
FROM call
WHERE provider IS NOT NULL AND model IS NOT NULL AND input_tokens + output_tokens > 0
      AND date(started_at + latency_ms / 1000, 'unixepoch') IS NOT NULL
GROUP BY 1, 2, 3, 4, 5, 6, 7;
