-- Schema 18: the span that a detached call belongs to, so that its trace is the same after a restart. Only set while traces are
-- recorded.

ALTER TABLE detached ADD COLUMN traceparent TEXT;
