-- Schema 25: which push configurations have something to send, so that a look for them reads no others.

ALTER TABLE a2a_push ADD COLUMN waiting INTEGER NOT NULL DEFAULT 0;   -- 1: its task has events after sent
UPDATE a2a_push SET waiting = 1 WHERE sent < (SELECT last_event FROM a2a_task WHERE id = a2a_push.task);
CREATE INDEX a2a_push_waiting ON a2a_push (next_at) WHERE waiting;
