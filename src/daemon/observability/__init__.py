"""Metrics, logs, status, and the tools' view of the daemon."""
