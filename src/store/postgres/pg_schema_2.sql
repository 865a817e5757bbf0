-- readable from: 1
-- Schema 2: the limits of all nodes together: permits of providers, daily budgets, rates of sources, quotas of calls, and
-- running calls of a principal.
-- Vendors: a node calls `admit` before it sends a request to a vendor, and `settle` afterwards. Each is one statement,
-- and so one transaction. Both lock rows in the same order: a request, budgets by scope and currency, the row of the
-- provider.

-- The running requests to vendors, of all nodes. Each has a permit of its provider, and a reserved amount.
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

-- One row for each provider ('provider:…') and each principal with a limit ('running:…'), which is locked while their
-- permits change hands.
CREATE TABLE limit_line (
    name text COLLATE "C" PRIMARY KEY
);

-- The nodes that wait for a permit of a provider, in the order of their numbers. A node asks for one call at a time,
-- and repeats this at least four times per second: after two seconds without it, the node has lost its place.
CREATE TABLE permit_wait (
    number   bigint GENERATED ALWAYS AS IDENTITY,
    provider text COLLATE "C" NOT NULL,
    node     text COLLATE "C" NOT NULL,
    asked_at timestamptz NOT NULL,
    PRIMARY KEY (provider, node)
);

-- The spent amount of each daily budget: of all calls (''), 'provider:…', 'principal:…' or 'agent:…'. Days are UTC days
-- of the database's clock.
CREATE TABLE budget (
    day      text COLLATE "C" NOT NULL,         -- YYYY-MM-DD
    scope    text COLLATE "C" NOT NULL,
    currency text COLLATE "C" NOT NULL,
    spent    double precision NOT NULL,
    PRIMARY KEY (day, scope, currency)
);

-- The rates of sources: the time at which a principal's next call would be due if all calls so far had come at the
-- rate. A row with a past time has no effect.
CREATE TABLE rate_slot (
    source    text COLLATE "C" NOT NULL,
    principal text COLLATE "C" NOT NULL,
    next_at   double precision NOT NULL,        -- Unix time in seconds
    PRIMARY KEY (source, principal)
);

-- The calls of a principal that count towards a quota: per UTC day, and per second of the last minute.
CREATE TABLE quota_day (
    quota     text COLLATE "C" NOT NULL,
    principal text COLLATE "C" NOT NULL,
    day       text COLLATE "C" NOT NULL,
    calls     bigint NOT NULL,
    PRIMARY KEY (quota, principal, day)
);

CREATE TABLE quota_second (
    quota     text COLLATE "C" NOT NULL,
    principal text COLLATE "C" NOT NULL,
    second    bigint NOT NULL,                  -- Unix time
    calls     bigint NOT NULL,
    PRIMARY KEY (quota, principal, second)
);

-- The running calls of a principal that each node may have: its part of the token's `max_running`.
CREATE TABLE running_share (
    principal text COLLATE "C" NOT NULL,
    node      text COLLATE "C" NOT NULL,
    wanted    integer NOT NULL,                 -- calls that run or wait there
    permits   integer NOT NULL,                 -- at most so many run there
    PRIMARY KEY (principal, node)
);

CREATE FUNCTION budget_day() RETURNS text LANGUAGE sql AS $$
    SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD')
$$;

-- Adds amounts to budgets, and locks the budgets until the transaction ends. A budget without a row begins with the
-- day's sum in the audit, but at least with `known`. The arrays are parallel.
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
            WHEN scope LIKE 'agent:%' THEN agent = substr(scope, length('agent:') + 1)
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

CREATE FUNCTION lock_line(of_name text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM limit_line WHERE name = of_name FOR UPDATE;
    IF NOT FOUND THEN
        INSERT INTO limit_line VALUES (of_name) ON CONFLICT DO NOTHING;
        PERFORM FROM limit_line WHERE name = of_name FOR UPDATE;
    END IF;
END $$;

-- Wakes the nodes that have waited longest for a permit.
CREATE FUNCTION wake_waiting(of_provider text, permits bigint) RETURNS void LANGUAGE sql AS $$
    SELECT pg_notify('toold_limits', node || ' provider:' || provider) FROM permit_wait
    WHERE provider = of_provider AND asked_at > clock_timestamp() - interval '2 seconds' ORDER BY number LIMIT permits
$$;

-- Decides whether a node may send a request to a vendor now. `decision`: 'admitted', 'refused' by a budget, or 'busy'.
-- Only with `may_take` does it admit the request, or, if the provider is busy, give the node a place in the queue.
-- `uses`: for each limit its scope, its currency, the spent amount and the amount that running requests have reserved.
-- The arrays limit_* are parallel.
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
    PERFORM lock_line('provider:' || of_provider);
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

-- Ends a request: frees its permit, ends its reservation, and records its cost. A second call does nothing.
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
    PERFORM lock_line('provider:' || ended.provider);
    PERFORM wake_waiting(ended.provider, 1);
END $$;

-- Frees the permits of a dead node. The cost of its requests is unknown, so their reserved amounts count as spent.
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
    DELETE FROM running_share WHERE node = dead;
    FOREACH of_provider IN ARRAY coalesce(providers, ARRAY[]::text[]) LOOP
        PERFORM lock_line('provider:' || of_provider);
        PERFORM wake_waiting(of_provider, (SELECT count(*) FROM vendor_request WHERE node = dead AND provider = of_provider));
    END LOOP;
    DELETE FROM vendor_request WHERE node = dead;
END $$;

-- Reserves the next slot of a source's rate (GCRA) if it comes within `max_wait_s`; a negative value reserves nothing.
-- `wait_s`: seconds until the slot; `full_in_s`: seconds until the rate has its whole burst again, before this call.
CREATE FUNCTION reserve_slot(
    of_source text, of_principal text, interval_s double precision, burst integer, max_wait_s double precision,
    OUT reserved boolean, OUT wait_s double precision, OUT full_in_s double precision
) LANGUAGE plpgsql AS $$
DECLARE
    due double precision;
    present double precision;
BEGIN
    INSERT INTO rate_slot AS slot VALUES (of_source, of_principal, 0)
    ON CONFLICT (source, principal) DO UPDATE SET next_at = slot.next_at RETURNING next_at INTO due;
    present := extract(epoch FROM clock_timestamp());
    due := greatest(due, present);
    full_in_s := due - present;
    wait_s := greatest(0, full_in_s - (burst - 1) * interval_s);
    reserved := wait_s <= max_wait_s;
    IF reserved THEN
        UPDATE rate_slot SET next_at = due + interval_s WHERE source = of_source AND principal = of_principal;
    END IF;
END $$;

-- Counts a call of a principal in quotas, or returns which quota is exhausted, for how long, and whether it is the
-- daily one. The arrays are parallel; a NULL limit means no limit. `known`: the node's count of the day, if the
-- database has no row of the day.
CREATE FUNCTION take_call(
    of_principal text, in_quotas text[], per_minute bigint[], per_day bigint[], known bigint[],
    OUT refused_by text, OUT of_day boolean, OUT wait_s double precision
) LANGUAGE plpgsql AS $$
DECLARE
    today text := budget_day();
    present double precision;
    wanted record;
    longest double precision := 0;
    blocking bigint;
BEGIN
    INSERT INTO quota_day SELECT quota, of_principal, today, before FROM unnest(in_quotas, known) AS given (quota, before)
    WHERE NOT EXISTS (
        SELECT FROM quota_day WHERE quota_day.quota = given.quota AND principal = of_principal AND day = today
    )
    ORDER BY quota COLLATE "C" ON CONFLICT DO NOTHING;
    PERFORM FROM quota_day WHERE quota = ANY (in_quotas) AND principal = of_principal AND day = today
    ORDER BY quota FOR UPDATE;
    present := extract(epoch FROM clock_timestamp());
    FOR wanted IN SELECT * FROM unnest(in_quotas, per_minute, per_day) AS given (quota, a_minute, a_day) LOOP
        IF wanted.a_day <= (
            SELECT calls FROM quota_day WHERE quota = wanted.quota AND principal = of_principal AND day = today
        ) THEN
            wait_s := 86400 - (present - 86400 * floor(present / 86400));
            IF wait_s > longest THEN
                longest := wait_s;
                refused_by := wanted.quota;
                of_day := true;
            END IF;
        END IF;
        -- A call counts until 60 seconds after its second has ended. The newest second that has to be over:
        SELECT max(second) INTO blocking FROM (
            SELECT second, sum(calls) OVER (ORDER BY second DESC) AS newer FROM quota_second
            WHERE quota = wanted.quota AND principal = of_principal AND second + 61 > present
        ) AS counted WHERE newer >= wanted.a_minute;
        IF blocking + 61 - present > longest THEN
            longest := blocking + 61 - present;
            refused_by := wanted.quota;
            of_day := false;
        END IF;
    END LOOP;
    wait_s := longest;
    IF refused_by IS NOT NULL THEN
        RETURN;
    END IF;
    UPDATE quota_day SET calls = calls + 1 WHERE quota = ANY (in_quotas) AND principal = of_principal AND day = today;
    INSERT INTO quota_second AS counted SELECT quota, of_principal, floor(present), 1
    FROM unnest(in_quotas, per_minute) AS given (quota, a_minute) WHERE a_minute IS NOT NULL
    ON CONFLICT (quota, principal, second) DO UPDATE SET calls = counted.calls + 1;
    DELETE FROM quota_second WHERE quota = ANY (in_quotas) AND principal = of_principal AND second + 61 <= present;
END $$;

-- Divides a principal's permits between the nodes that want some: each gets as many as it wants, but at most an equal
-- part; the rest goes to the nodes that want more. Returns the permits of this node, which already `uses` some, and its
-- part. The remainder of the integer division moves from node to node each second.
CREATE FUNCTION share_running(
    me text, of_principal text, max_running integer, wants integer, uses integer, OUT held integer, OUT part integer
) LANGUAGE plpgsql AS $$
DECLARE
    others integer;
    remaining integer := max_running;
    sharing integer;
    before integer;
    next_part integer;
    candidate record;
    too_many text[] := ARRAY[]::text[];
BEGIN
    IF NOT EXISTS (SELECT FROM node WHERE epoch = me AND state <> 'dead') THEN
        RAISE EXCEPTION 'the node is dead' USING ERRCODE = 'TLD01';
    END IF;
    PERFORM lock_line('running:' || of_principal);
    INSERT INTO running_share VALUES (of_principal, me, wants, uses)
    ON CONFLICT (principal, node) DO UPDATE SET wanted = wants RETURNING permits INTO before;
    SELECT count(*) INTO sharing FROM running_share JOIN node ON epoch = running_share.node
    WHERE principal = of_principal AND state <> 'dead';
    part := 0;
    FOR candidate IN
        SELECT epoch, wanted, permits FROM running_share JOIN node ON epoch = running_share.node
        WHERE principal = of_principal AND state <> 'dead'
        ORDER BY wanted, md5(epoch || floor(extract(epoch FROM clock_timestamp()))::text)
    LOOP
        next_part := least(candidate.wanted, ceil(remaining::float8 / sharing)::integer);
        remaining := remaining - next_part;
        sharing := sharing - 1;
        IF candidate.epoch = me THEN
            part := next_part;
        ELSIF candidate.permits > next_part THEN
            too_many := too_many || candidate.epoch;
        END IF;
    END LOOP;
    SELECT coalesce(sum(permits), 0) INTO others FROM running_share JOIN node ON epoch = running_share.node
    WHERE principal = of_principal AND state <> 'dead' AND epoch <> me;
    held := greatest(uses, least(part, max_running - others));
    IF held = 0 AND wants = 0 THEN
        DELETE FROM running_share WHERE principal = of_principal AND node = me;
    ELSE
        UPDATE running_share SET permits = held WHERE principal = of_principal AND node = me;
    END IF;
    -- Those that should give some back, and those that may use what this node has given back.
    PERFORM pg_notify('toold_limits', epoch || ' running:' || of_principal)
    FROM running_share JOIN node ON epoch = running_share.node
    WHERE principal = of_principal AND state <> 'dead' AND epoch <> me
      AND ((held < wants AND epoch = ANY (too_many)) OR (held < before AND permits < wanted));
END $$;

-- The object of a result in a bucket; NULL: its content is in result_chunk.
ALTER TABLE retained_result ADD COLUMN object text COLLATE "C";

-- Objects to delete: those of unfinished uploads, and those of deleted results.
CREATE TABLE result_object (
    name   text COLLATE "C" PRIMARY KEY,
    due_at double precision NOT NULL            -- Unix time in seconds
);

CREATE INDEX result_object_due ON result_object (due_at);
