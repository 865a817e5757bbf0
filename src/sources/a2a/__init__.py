"""Remote agents that speak A2A: their cards, their signatures, and calls of them as tools.

Used by ``source_factory.py`` only. Knows A2A's objects (``protocol/a2a``), the checked network and the pins. Must never
know sessions, limits on calls, the A2A transport, or hosted agents.
"""
