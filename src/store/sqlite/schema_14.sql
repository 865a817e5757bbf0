-- Schema 14: which principal uploaded which file to a vendor. Earlier uploads have no record; only operators see them.

CREATE TABLE vendor_file (
    provider    TEXT NOT NULL,
    file_id     TEXT NOT NULL,             -- the vendor's id
    principal   TEXT NOT NULL,
    uploaded_at REAL NOT NULL,             -- Unix time in seconds
    PRIMARY KEY (provider, file_id)
) WITHOUT ROWID;

CREATE INDEX vendor_file_owner ON vendor_file (principal, provider);
