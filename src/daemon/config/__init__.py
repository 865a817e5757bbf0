"""The settings: their types, defaults and sources, and those that can change while the daemon runs."""
