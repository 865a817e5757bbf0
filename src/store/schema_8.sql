-- Schema 8: a session has a toolset, and has the same when its client comes back. Older ones had all tools, which is what
-- `standard` had.

ALTER TABLE session ADD COLUMN toolset TEXT NOT NULL DEFAULT 'standard';
