"""Agents that toold hosts, compared with those of google-adk and pydantic-ai: ``python -m benchmarks.agents``.

``__main__`` begins, ``measure`` runs the rounds, ``report`` shows them. The model is ``stand_in_vendor``, a separate
process; ``flow`` is what all agents have in common. ``toold_tools`` are toold's tools; ``adk_runs`` and
``pydantic_ai_runs`` run in the environments of these projects.
"""
