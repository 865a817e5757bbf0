"""Baselines: timings of real calls, and comparisons between them (docs/baselines.md).

``matrix`` and ``plan`` define the calls, ``collecting`` makes them, ``draft`` stores them during the run, ``record`` is
the result. ``summary`` and ``comparison`` compute, ``pictures`` and ``page`` present; only these need the packages of
the extra ``baseline``. The scripts next to this package only parse the command line.
"""

from .needs import require

require(("toold",))
