-- knowledge.db: the documents of collections, their chunks and what is searched. Each scope has a full-text table
-- text_ID and, with embeddings, a vector table vector_ID, so that no principal's search depends on another's
-- documents.

CREATE TABLE scope (
  id INTEGER PRIMARY KEY,
  collection TEXT NOT NULL,
  owner TEXT NOT NULL,                -- the principal whose documents these are; empty: those of a folder
  model TEXT,                         -- whose embeddings the vector table has
  dimensions INTEGER,
  UNIQUE (collection, owner)
) STRICT;

CREATE TABLE document (
  id INTEGER PRIMARY KEY,
  scope_id INTEGER NOT NULL REFERENCES scope (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  title TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  digest BLOB NOT NULL,               -- of the text and of how it was cut
  file_state TEXT,                    -- of a file: its size and times when it was read
  added_at REAL NOT NULL,
  embedded INTEGER NOT NULL DEFAULT 0,
  UNIQUE (scope_id, name)
) STRICT;

CREATE TABLE chunk (
  id INTEGER PRIMARY KEY,
  document_id INTEGER NOT NULL REFERENCES document (id) ON DELETE CASCADE,
  number INTEGER NOT NULL,            -- within the document, from 1
  line INTEGER NOT NULL,
  heading TEXT NOT NULL,
  text TEXT NOT NULL,
  vector BLOB,                        -- until those of all chunks of the document are there
  UNIQUE (document_id, number)
) STRICT;
