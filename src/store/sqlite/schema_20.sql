-- Schema 20: how the run of an agent ended. The list of runs has it, longer than results are kept.

ALTER TABLE run ADD COLUMN outcome TEXT;     -- of an agent's run that has ended: 'ok' or the error's code
ALTER TABLE run ADD COLUMN stopped_by TEXT;  -- the limit that ended it before it was done; '' if none
