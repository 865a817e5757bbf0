"""How fast the daemon is, as ratios to a bare echo server in the same run: ``python -m benchmarks`` (``make bench``).

``__main__`` is the entry point, ``measure`` runs the rounds, ``report`` shows them. The servers (``servers``) and the
load generator (``load``) are separate processes, so that the timed server shares no interpreter with the timer.

``shaping`` (``--shaping``) measures how fast results are shaped, compared with plain Python.
"""
