-- Schema 26: the entries of the registry that the daemon serves. A prompt has a row for each kept version.

CREATE TABLE registry_entry (
    kind       TEXT NOT NULL,
    id         TEXT NOT NULL,
    version    INTEGER NOT NULL,     -- from 1; each change adds one
    content    BLOB NOT NULL,        -- JSON
    created_at REAL NOT NULL,        -- of the entry, Unix time
    changed_at REAL NOT NULL,        -- of this version, Unix time
    PRIMARY KEY (kind, id, version)
) WITHOUT ROWID;
