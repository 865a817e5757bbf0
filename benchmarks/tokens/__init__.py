"""What a model has to read and write to find and use three tools, by each presentation: ``make bench-tokens``."""
