"""What the doctor looks at of the operator's own tools: the files of ``workflow_dir`` and ``pipeline_dir``."""

from ..tools import pipelines_in, workflows_in
from .check import Check
from .settings import Settings


def files(settings: Settings) -> list[Check]:
    """For each folder whether its files can be used; nothing where there is no folder."""
    checks = []
    for setting, folder, read in (
        ("workflow_dir", settings.workflow_dir, workflows_in),
        ("pipeline_dir", settings.pipeline_dir, pipelines_in),
    ):
        if folder is None:
            continue
        tools, problems = read(folder)
        checks += [
            Check(setting, "warn", problem, "mend the file; the daemon serves the others") for problem in problems
        ]
        if not problems:
            checks.append(Check(setting, "ok", f"{folder} has {', '.join(tool.name for tool in tools) or 'no tools'}"))
    return checks
