-- Schema 24: which detached call a call created, for a crash before its answer is stored.

ALTER TABLE run ADD COLUMN created TEXT;   -- the id of the detached call that it created or continues as
