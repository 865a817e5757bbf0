"""Checks: ``toold doctor`` from outside, ``self-check`` from within the running daemon."""
