-- Schema 22: the events of A2A's tasks, which streams send and repeat.

ALTER TABLE a2a_task ADD COLUMN last_event INTEGER NOT NULL DEFAULT 0;   -- the number of its last event

CREATE TABLE a2a_event (
    task    TEXT NOT NULL,
    number  INTEGER NOT NULL,      -- within the task, from 1
    partial INTEGER NOT NULL,      -- 1: a piece of an answer, deleted once the task has ended
    event   BLOB NOT NULL,         -- JSON of A2A 1.0
    PRIMARY KEY (task, number)
) WITHOUT ROWID;
