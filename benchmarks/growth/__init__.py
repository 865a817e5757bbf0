"""Cost curves by load and data: ``python -m benchmarks.growth``.

``calls``, ``connections``, ``tools`` and ``rows`` measure, ``curves`` fits and judges, ``report`` draws and writes.
Costs are CPU time and memory of the server, so that what a machine does besides falls on none of them.
"""
