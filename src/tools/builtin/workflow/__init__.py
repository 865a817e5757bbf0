"""Workflow tools: one engine, and one TOML file per tool (docs/writing-a-workflow-tool.md).

The caller investigates and reports its findings step by step. Each answer suggests what to examine next, and the last
step asks a model once, with the files. A call passes ``workflow_tool.py`` → ``step_engine.py`` → ``step_answer.py``.
"""

from .workflow_loader import own_workflows, workflows_in

__all__ = ["own_workflows", "workflows_in"]
