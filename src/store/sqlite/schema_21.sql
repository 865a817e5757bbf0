-- Schema 21: tasks of A2A. A task is a detached call as a client of A2A sees it; its id is the call's.

CREATE TABLE a2a_task (
    number     INTEGER PRIMARY KEY,
    id         TEXT NOT NULL UNIQUE,       -- the call's id
    principal  TEXT NOT NULL,
    agent      TEXT NOT NULL,
    context_id TEXT NOT NULL,              -- as the client knows it
    state      TEXT NOT NULL,              -- of A2A 1.0, as last seen
    changed_at REAL NOT NULL,              -- when it entered the state, Unix time
    ended      INTEGER NOT NULL,           -- 1 once it cannot change
    history    BLOB NOT NULL               -- its messages, JSON
);

CREATE INDEX a2a_task_of_principal ON a2a_task (principal, agent, changed_at DESC, number DESC);
CREATE INDEX a2a_task_by_change ON a2a_task (changed_at);
CREATE INDEX a2a_task_unfinished ON a2a_task (number) WHERE ended = 0;
