"""The doctor's checks of the operator's tools: the files in ``workflow_dir`` and ``pipeline_dir``, the secrets of
sources, the keys of prompt servers, and the programs of subagents."""

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from ...protocol.name_suggestions import close_names, did_you_mean
from ...sources import COMMAND_ENVIRONMENT, KnownPins, may_provide, unavailable_secrets
from ...store import StoreError
from ...tools import (
    EFFECT_LOG,
    SecretLocation,
    Tool,
    clink_tools,
    find_tools,
    named_by,
    pipelines_in,
    simulated_tools,
    workflows_in,
)
from ..config.settings import Settings
from ..store_opening import known_pins
from .check_result import CheckResult


def files(settings: Settings) -> list[CheckResult]:
    """One check per configured directory: whether its files are valid."""
    checks = []
    for setting, directory, read in (
        ("workflow_dir", settings.workflow_dir, workflows_in),
        ("pipeline_dir", settings.pipeline_dir, pipelines_in),
    ):
        if directory is None:
            continue
        tools, problems = read(directory)
        checks += [
            CheckResult(setting, "warn", problem, "fix the file; the daemon serves the others") for problem in problems
        ]
        unknown = list(_unknown(settings, tools)) if setting == "pipeline_dir" else []
        checks += unknown
        if not problems and not unknown:
            checks.append(
                CheckResult(setting, "ok", f"{directory} has {', '.join(tool.name for tool in tools) or 'no tools'}")
            )
    return checks


def source_secrets(settings: Settings, env: Mapping[str, str]) -> list[CheckResult]:
    """One check per source with secrets: whether they can be read. Nothing is sent."""
    checks = list[CheckResult]()
    for name, source in settings.sources.items():
        remedy = f"set it where the daemon starts, or change auth or env in [sources.{name}]"
        checks += _secrets(f"source {name}", source.secrets, remedy, env)
    return checks


def prompt_servers(settings: Settings, env: Mapping[str, str]) -> list[CheckResult]:
    """One check per prompt server with a key: whether the key can be read. Nothing is sent."""
    checks = list[CheckResult]()
    for name, server in settings.prompts.servers:
        keys = () if server.key is None else (server.key.secret,)
        remedy = f"set it where the daemon starts, or change key in [prompts.{name}]"
        checks += _secrets(f"prompts {name}", keys, remedy, env)
    return checks


def _secrets(
    check: str, secrets: tuple[SecretLocation, ...], remedy: str, env: Mapping[str, str]
) -> Iterator[CheckResult]:
    missing = unavailable_secrets(secrets, environment=COMMAND_ENVIRONMENT, env=env)
    yield from (CheckResult(check, "warn", problem, remedy) for problem in missing)
    if secrets and not missing:
        yield CheckResult(check, "ok", "its secrets can be read")


def subagent_programs(settings: Settings, env: Mapping[str, str]) -> list[CheckResult]:
    """One check per subagent: whether its program is installed. Nothing is started."""
    checks = []
    for name, subagent in settings.clink.items():
        program = subagent.command[0]
        if shutil.which(program, path=env.get("PATH")):
            checks.append(CheckResult(f"subagent {name}", "ok", f"{program} is installed"))
        else:
            remedy = f"install it where the daemon runs, or correct command in [clink.{name}]"
            checks.append(CheckResult(f"subagent {name}", "warn", f"{program} is not in PATH", remedy))
    return checks


def _unknown(settings: Settings, pipelines: list[Tool]) -> Iterator[CheckResult]:
    """One check per unknown tool in a pipeline: its calls would be refused."""
    simulated = simulated_tools(settings.state_dir / EFFECT_LOG) if settings.simulated else ()
    conditional = (*simulated, *clink_tools(settings.clink))
    registry = find_tools(conditional, workflow_dir=settings.workflow_dir, pipeline_dir=settings.pipeline_dir)
    known = [tool.name for tool in registry.tools]
    try:
        pins = known_pins(settings, settings.state_dir)
    except StoreError:
        pins = KnownPins({})  # then any source may have any tool; the checks of the database report the reason
    for pipeline in pipelines:
        for name in named_by(Path(pipeline.source)):
            if name in registry or any(may_provide(*source, name, pins=pins) for source in settings.sources.items()):
                continue
            nor = ", nor a tool of a source" if settings.sources else ""
            hint = did_you_mean(close_names(name, known, n=1)) or "`toold tools` lists them"
            message = f"the pipeline {pipeline.source} names {name!r}, which is not a tool of this daemon{nor}; {hint}"
            yield CheckResult("pipeline_dir", "warn", message, "name another tool, or add its source")
