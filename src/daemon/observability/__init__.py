"""Metrics, logs, status and the view that tools have of the daemon."""
