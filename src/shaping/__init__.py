"""Paths, filters, templates and plans."""
