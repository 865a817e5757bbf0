-- Schema 8: a session has a toolset, and the same one when it is resumed. Older sessions had all tools, as `standard`
-- had.

ALTER TABLE session ADD COLUMN toolset TEXT NOT NULL DEFAULT 'standard';
