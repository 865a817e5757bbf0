"""The quality and the speed of tool search, by a judged set of tasks: ``python -m benchmarks.search``."""
