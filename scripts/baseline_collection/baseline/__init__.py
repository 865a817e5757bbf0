"""Baselines: real calls of a daemon, what they took, and whether that changed (docs/baselines.md).

``matrix`` and ``plan`` say what is called, ``collecting`` calls, ``draft`` keeps it while it runs, ``record`` is what
comes out. ``summary`` and ``comparison`` reckon, ``pictures`` and ``page`` show: only they need the packages of the
extra ``baseline``. The scripts beside this package read the command line and nothing more.
"""

from .needs import require

require(("toold",))
