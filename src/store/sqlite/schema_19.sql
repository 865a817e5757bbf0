-- Schema 19: sessions that used an argument name of an earlier server keep their form of answers after a restart.

ALTER TABLE session ADD COLUMN former INTEGER NOT NULL DEFAULT 0;   -- 1 once one of its calls used such a name
