-- Schema 28: the messages that began tasks of A2A. A repeat of the message finds its task.

CREATE TABLE a2a_message (
    key     BLOB PRIMARY KEY,          -- the hash of its principal, toolset, agent, context and id
    task    TEXT NOT NULL,             -- the task that it began, which may be deleted by now
    content BLOB NOT NULL,             -- the hash of what it says
    at      REAL NOT NULL              -- Unix time in seconds
) WITHOUT ROWID;

CREATE INDEX a2a_message_by_time ON a2a_message (at);
