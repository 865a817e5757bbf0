"""Traces: ended calls and completions as spans, sent to a collector over OTLP/HTTP (docs/tracing.md)."""
