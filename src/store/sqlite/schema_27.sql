-- Schema 27: credentials that users gave for services, which the sources of tools send for them.

CREATE TABLE user_credential (
    principal  TEXT NOT NULL,
    service    TEXT NOT NULL,
    fields     TEXT NOT NULL,       -- the names of its fields, JSON
    changed_at REAL NOT NULL,       -- Unix time
    sealed     BLOB NOT NULL,       -- the fields and their values, encrypted
    PRIMARY KEY (principal, service)
) WITHOUT ROWID;
