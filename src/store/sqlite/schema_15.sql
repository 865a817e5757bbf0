-- Schema 15: calls that were accepted and answered, but ended before they started. Their ids are known like those of
-- calls that ran, so that no answer is followed by another one.

ALTER TABLE journal ADD COLUMN unstarted INTEGER NOT NULL DEFAULT 0;   -- its tool was not entered
