-- readable from: 1
-- Schema 2: what all nodes together may ask vendors: permits of providers, and daily budgets.
--
-- A node calls `admit` before it sends a request to a vendor, and `settle` after it. Both are one statement, so one
-- transaction. They lock rows in the same order: a request, budgets by scope and currency, the line of the provider.

-- The requests to vendors that run, of all nodes. Each has a permit of its provider, and a reserved amount.
CREATE TABLE vendor_request (
    id       bigint PRIMARY KEY,                -- chosen by the node, so that a repeated statement finds its effect
    node     text COLLATE "C" NOT NULL,         -- its epoch
    provider text COLLATE "C" NOT NULL,
    scopes   text[] NOT NULL,                   -- the budgets for which it counts
    currency text COLLATE "C",                  -- of the reserved amount; NULL: nothing is reserved
    amount   double precision NOT NULL          -- the estimated cost
);

CREATE INDEX vendor_request_provider ON vendor_request (provider);
CREATE INDEX vendor_request_node ON vendor_request (node);

-- One row for each provider, which is locked while its permits change hands.
CREATE TABLE provider_line (
    provider text COLLATE "C" PRIMARY KEY
);

-- The nodes that wait for a permit of a provider, in the order of their numbers. A node asks for one call at a time, and
-- again at least four times a second: one that has not asked for two seconds has lost its turn.
CREATE TABLE permit_wait (
    number   bigint GENERATED ALWAYS AS IDENTITY,
    provider text COLLATE "C" NOT NULL,
    node     text COLLATE "C" NOT NULL,
    asked_at timestamptz NOT NULL,
    PRIMARY KEY (provider, node)
);

-- What is spent of each daily budget: of all calls (''), 'provider:…', 'principal:…' or 'agent:…'. Days are UTC days of
-- the database's clock.
CREATE TABLE budget (
    day      text COLLATE "C" NOT NULL,         -- YYYY-MM-DD
    scope    text COLLATE "C" NOT NULL,
    currency text COLLATE "C" NOT NULL,
    spent    double precision NOT NULL,
    PRIMARY KEY (day, scope, currency)
);

CREATE FUNCTION budget_day() RETURNS text LANGUAGE sql AS $$
    SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD')
$$;

-- Adds amounts to budgets, and locks these until the transaction ends. A budget without a row begins with what the
-- audit has of the day, but at least with `known`. The arrays are parallel.
CREATE FUNCTION book(today text, in_scopes text[], in_currencies text[], costs double precision[], known double precision[])
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO budget (day, scope, currency, spent)
    SELECT today, scope, currency, greatest(least_spent, (
        SELECT coalesce(sum(cost), 0) FROM day_spent
        WHERE day_spent.day = today AND day_spent.currency = wanted.currency AND CASE
            WHEN scope = '' THEN true
            WHEN scope LIKE 'provider:%' THEN provider = substr(scope, length('provider:') + 1)
            WHEN scope LIKE 'principal:%' THEN principal = substr(scope, length('principal:') + 1)
            ELSE false END
    ))
    FROM unnest(in_scopes, in_currencies, known) AS wanted (scope, currency, least_spent)
    WHERE NOT EXISTS (
        SELECT FROM budget WHERE day = today AND budget.scope = wanted.scope AND budget.currency = wanted.currency
    )
    ORDER BY scope COLLATE "C", currency COLLATE "C"
    ON CONFLICT DO NOTHING;
    PERFORM FROM budget JOIN unnest(in_scopes, in_currencies) AS wanted (scope, currency)
        ON budget.scope = wanted.scope AND budget.currency = wanted.currency
    WHERE day = today ORDER BY budget.scope, budget.currency FOR UPDATE OF budget;
    UPDATE budget SET spent = spent + cost
    FROM unnest(in_scopes, in_currencies, costs) AS wanted (scope, currency, cost)
    WHERE day = today AND budget.scope = wanted.scope AND budget.currency = wanted.currency AND cost <> 0;
END $$;

CREATE FUNCTION lock_line(of_provider text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM provider_line WHERE provider = of_provider FOR UPDATE;
    IF NOT FOUND THEN
        INSERT INTO provider_line VALUES (of_provider) ON CONFLICT DO NOTHING;
        PERFORM FROM provider_line WHERE provider = of_provider FOR UPDATE;
    END IF;
END $$;

-- Wakes the nodes that have waited longest for a permit.
CREATE FUNCTION wake_waiting(of_provider text, permits bigint) RETURNS void LANGUAGE sql AS $$
    SELECT pg_notify('toold_limits', node || ' ' || provider) FROM permit_wait
    WHERE provider = of_provider AND asked_at > clock_timestamp() - interval '2 seconds' ORDER BY number LIMIT permits
$$;

-- Decides whether a node may send a request to a vendor now. `decision`: 'admitted', 'refused' by a budget, or 'busy'.
-- Only with `may_take` it is admitted, or the node takes a place in the line if the provider is busy. `uses`: of each
-- limit its scope, its currency, what is spent and what running requests have reserved. The arrays limit_* are parallel.
CREATE FUNCTION admit(
    me text, request bigint, of_provider text, permits integer, may_take boolean, request_scopes text[],
    request_currency text, estimate double precision, limit_scopes text[], limit_currencies text[],
    limit_amounts double precision[], limit_known double precision[], OUT decision text, OUT uses json
) LANGUAGE plpgsql AS $$
DECLARE
    today text := budget_day();
    exceeded boolean;
    place bigint;
    in_use bigint;
    ahead bigint;
BEGIN
    IF NOT EXISTS (SELECT FROM node WHERE epoch = me AND state <> 'dead') THEN
        RAISE EXCEPTION 'the node is dead' USING ERRCODE = 'TLD01';
    END IF;
    IF EXISTS (SELECT FROM vendor_request WHERE id = request) THEN
        decision := 'admitted';
        RETURN;
    END IF;
    PERFORM book(today, limit_scopes, limit_currencies, array_fill(0::float8, ARRAY[cardinality(limit_scopes)]), limit_known);
    SELECT json_agg(json_build_array(scope, currency, spent, reserved)), bool_or(
        spent >= amount - 1e-9 OR (currency = request_currency AND estimate + reserved > amount - spent + 1e-9)
    ) INTO uses, exceeded
    FROM (
        SELECT budget.scope, budget.currency, wanted.amount, budget.spent, coalesce((
            SELECT sum(vendor_request.amount) FROM vendor_request JOIN node ON epoch = vendor_request.node
            WHERE state <> 'dead' AND vendor_request.currency = budget.currency AND budget.scope = ANY (scopes)
        ), 0) AS reserved
        FROM unnest(limit_scopes, limit_currencies, limit_amounts) AS wanted (scope, currency, amount)
        JOIN budget ON day = today AND budget.scope = wanted.scope AND budget.currency = wanted.currency
    ) AS used;
    IF exceeded THEN
        decision := 'refused';
        RETURN;
    END IF;
    PERFORM lock_line(of_provider);
    SELECT number INTO place FROM permit_wait WHERE provider = of_provider AND node = me;
    SELECT count(*) INTO in_use FROM vendor_request JOIN node ON epoch = vendor_request.node
    WHERE provider = of_provider AND state <> 'dead';
    SELECT count(*) INTO ahead FROM permit_wait JOIN node ON epoch = permit_wait.node
    WHERE provider = of_provider AND state <> 'dead' AND epoch <> me AND (place IS NULL OR number < place)
      AND asked_at > clock_timestamp() - interval '2 seconds';
    IF may_take AND in_use + ahead < permits THEN
        INSERT INTO vendor_request
        VALUES (request, me, of_provider, request_scopes, request_currency, coalesce(estimate, 0));
        DELETE FROM permit_wait WHERE provider = of_provider AND node = me;
        decision := 'admitted';
        RETURN;
    END IF;
    decision := 'busy';
    IF may_take THEN
        INSERT INTO permit_wait (provider, node, asked_at) VALUES (of_provider, me, clock_timestamp())
        ON CONFLICT (provider, node) DO UPDATE SET asked_at = excluded.asked_at;
    END IF;
END $$;

-- Ends a request: its permit is free, its reservation ends, and its cost is spent. Again, it does nothing.
CREATE FUNCTION settle(request bigint, cost_currency text, cost double precision) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    ended vendor_request;
    scopes_count integer;
BEGIN
    DELETE FROM vendor_request WHERE id = request RETURNING * INTO ended;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    scopes_count := cardinality(ended.scopes);
    IF cost > 0 AND scopes_count > 0 THEN
        PERFORM book(budget_day(), ended.scopes, array_fill(cost_currency, ARRAY[scopes_count]),
                     array_fill(cost, ARRAY[scopes_count]), array_fill(0::float8, ARRAY[scopes_count]));
    END IF;
    PERFORM lock_line(ended.provider);
    PERFORM wake_waiting(ended.provider, 1);
END $$;

-- A node is dead: its permits are free. What its requests cost is unknown, so what they reserved counts as spent.
CREATE FUNCTION free_limits(dead text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    in_scopes text[];
    in_currencies text[];
    costs double precision[];
    providers text[];
    of_provider text;
BEGIN
    PERFORM FROM vendor_request WHERE node = dead ORDER BY id FOR UPDATE;
    SELECT array_agg(scope), array_agg(currency), array_agg(total) INTO in_scopes, in_currencies, costs
    FROM (
        SELECT scope, currency, sum(amount) AS total FROM vendor_request, unnest(scopes) AS scope
        WHERE node = dead AND currency IS NOT NULL GROUP BY scope, currency
    ) AS reserved;
    IF in_scopes IS NOT NULL THEN
        PERFORM book(budget_day(), in_scopes, in_currencies, costs, array_fill(0::float8, ARRAY[cardinality(costs)]));
    END IF;
    SELECT array_agg(DISTINCT provider ORDER BY provider) INTO providers FROM vendor_request WHERE node = dead;
    DELETE FROM permit_wait WHERE node = dead;
    FOREACH of_provider IN ARRAY coalesce(providers, ARRAY[]::text[]) LOOP
        PERFORM lock_line(of_provider);
        PERFORM wake_waiting(of_provider, (SELECT count(*) FROM vendor_request WHERE node = dead AND provider = of_provider));
    END LOOP;
    DELETE FROM vendor_request WHERE node = dead;
END $$;
