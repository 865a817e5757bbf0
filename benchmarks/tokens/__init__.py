"""The tokens that a model reads and writes to find and use three tools, by presentation: ``make bench-tokens``."""
