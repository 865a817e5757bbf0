"""The settings: what they are, where they come from, and which of them change while the daemon runs."""
