-- Schema 17: paused calls, which wait for decisions of a person; and the results of runs that have not ended, which
-- have separate limits.

-- A paused call is a detached call with expires_at.
ALTER TABLE detached ADD COLUMN expires_at REAL;    -- while paused: when its open requests expire, by the store's clock
ALTER TABLE detached ADD COLUMN remaining_s REAL;   -- while paused: how long it may run after the last decision
ALTER TABLE detached ADD COLUMN drops_at REAL;      -- since its first pause: when its run is dropped, by the store's clock
ALTER TABLE detached ADD COLUMN dropped INTEGER NOT NULL DEFAULT 0;   -- some results of its run were deleted

-- For the next call whose requests expire.
CREATE INDEX detached_expires ON detached (expires_at) WHERE expires_at IS NOT NULL;

-- The requests of a call, open or decided, as long as its id is known.
CREATE TABLE input_request (
    number        INTEGER NOT NULL,         -- of the call in the journal
    id            TEXT NOT NULL,
    call_id       TEXT NOT NULL,
    position      INTEGER NOT NULL,         -- the call's requests in their order
    request       BLOB,                     -- JSON; NULL once the call has ended
    decision      BLOB,                     -- JSON; NULL while open, and once the call has ended
    decision_hash BLOB,                     -- of the decision's JSON; NULL while open
    PRIMARY KEY (number, id)
) WITHOUT ROWID;

CREATE INDEX input_request_call ON input_request (call_id);

CREATE TRIGGER detached_deleted AFTER DELETE ON detached BEGIN
    UPDATE input_request SET request = NULL, decision = NULL WHERE number = OLD.number;
END;

CREATE TRIGGER journal_deleted_requests AFTER DELETE ON journal BEGIN
    DELETE FROM input_request WHERE number = OLD.number;
END;

-- A child call of a run that has not ended. Its result does not expire, and counts separately.
ALTER TABLE journal ADD COLUMN unfinished INTEGER NOT NULL DEFAULT 0;
ALTER TABLE kept ADD COLUMN unfinished_bytes INTEGER NOT NULL DEFAULT 0;   -- bytes are those of all other results

DROP INDEX journal_kept;
CREATE INDEX journal_kept ON journal (principal, ended_at) WHERE state = 'done' AND NOT unfinished;
CREATE INDEX journal_unfinished ON journal (principal, ended_at) WHERE unfinished;

DROP TRIGGER journal_kept_insert;
DROP TRIGGER journal_kept_update;
DROP TRIGGER journal_kept_delete;

CREATE TRIGGER journal_kept_insert AFTER INSERT ON journal WHEN NEW.result_bytes BEGIN
    INSERT INTO kept (principal, bytes, unfinished_bytes)
    VALUES (NEW.principal, NEW.result_bytes * (1 - NEW.unfinished), NEW.result_bytes * NEW.unfinished)
    ON CONFLICT DO UPDATE SET bytes = bytes + excluded.bytes,
                              unfinished_bytes = unfinished_bytes + excluded.unfinished_bytes;
END;

CREATE TRIGGER journal_kept_update AFTER UPDATE ON journal
WHEN NEW.result_bytes != OLD.result_bytes OR (NEW.unfinished != OLD.unfinished AND NEW.result_bytes) BEGIN
    INSERT INTO kept (principal, bytes, unfinished_bytes)
    VALUES (NEW.principal, NEW.result_bytes * (1 - NEW.unfinished) - OLD.result_bytes * (1 - OLD.unfinished),
            NEW.result_bytes * NEW.unfinished - OLD.result_bytes * OLD.unfinished)
    ON CONFLICT DO UPDATE SET bytes = bytes + excluded.bytes,
                              unfinished_bytes = unfinished_bytes + excluded.unfinished_bytes;
END;

CREATE TRIGGER journal_kept_delete AFTER DELETE ON journal WHEN OLD.result_bytes BEGIN
    INSERT INTO kept (principal, bytes, unfinished_bytes)
    VALUES (OLD.principal, -OLD.result_bytes * (1 - OLD.unfinished), -OLD.result_bytes * OLD.unfinished)
    ON CONFLICT DO UPDATE SET bytes = bytes + excluded.bytes,
                              unfinished_bytes = unfinished_bytes + excluded.unfinished_bytes;
END;
