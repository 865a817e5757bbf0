"""Example programs for hooks (docs/hooks.md). They use only Python's standard library, so that they can be copied."""
