"""How fast the daemon is, as ratios to a bare echo server in the same run: ``python -m benchmarks`` (``make bench``).

``__main__`` begins, ``measure`` runs the rounds, ``report`` judges and shows them. The servers (``servers``) and the
load generator (``load``) are processes of their own: what is timed shares no interpreter with what times it.

``shaping`` is a run of its own (``--shaping``): how fast results are shaped, beside plain Python.
"""
