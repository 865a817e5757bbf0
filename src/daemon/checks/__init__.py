"""Health checks: ``toold doctor`` from outside, ``self-check`` inside the running daemon."""
