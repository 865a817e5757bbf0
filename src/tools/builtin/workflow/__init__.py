"""Work in steps: one engine, and a TOML file for each tool (docs/writing-a-workflow-tool.md).

The caller investigates and reports, each answer says what to look at next, and the last step asks a model once, with
the files. A call goes ``workflow.py`` → ``engine.py`` (what a step makes of a run) → ``answer.py``.
"""

from .workflow_loader import own_workflows, workflows_in

__all__ = ["own_workflows", "workflows_in"]
