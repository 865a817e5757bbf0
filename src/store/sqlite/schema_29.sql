-- Schema 29: for which agent's runs models were asked. Of earlier days it is not known.

CREATE TABLE new_day_spent (
    day           TEXT NOT NULL,             -- YYYY-MM-DD in UTC, of the call's end
    principal     TEXT NOT NULL,
    tool          TEXT NOT NULL,
    agent         TEXT NOT NULL,             -- the outermost agent of the call; '' if none
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
    PRIMARY KEY (day, principal, tool, agent, provider, model, simulated, currency)
) WITHOUT ROWID;

INSERT INTO new_day_spent
SELECT day, principal, tool, '', provider, model, simulated, currency, completions, input_tokens, output_tokens,
       cached_tokens, cost, estimated
FROM day_spent;

DROP TABLE day_spent;
ALTER TABLE new_day_spent RENAME TO day_spent;
