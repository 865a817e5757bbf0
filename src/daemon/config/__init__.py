"""The settings: their types and defaults, their sources, and which of them can change while the daemon runs."""
