"""``toold doctor``: checks for problems and prints a remedy for each."""

import asyncio
import dataclasses
import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal

import click

from ..daemon import CheckResult, Settings, diagnose, settings_report
from .command_settings import settings_with
from .daemon_connection import CommandFailedError
from .editors import check_editors
from .operator_client import operator_request, running_pid
from .terminal_output import Styled, say, say_json

_COLOURS: Final = {"ok": "green", "warn": "yellow", "fail": "red"}
_ALWAYS: Final = ("workspace", "client_workspaces", "kimi_api_key", "glm_api_key", "providers")
"""Settings of the daemon that are shown even if they have their defaults."""

Subject = Literal["daemon", "shell"]


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
def command(as_json: bool) -> None:
    """Check API keys, ports, files, SDKs, reachability of vendors and sources, and registered editors.

    The checks use the settings of this shell and directory, with which a daemon started here would run. If a daemon
    runs, its own settings are shown first. Changes nothing. Exits with 1 if a check fails.
    """
    settings = settings_with({})
    report, unavailable = _daemon_report(settings)
    daemon = [unavailable] if unavailable else []
    daemon += daemon_checks(report, settings_report(settings)) if report else []
    checks: dict[Subject, list[CheckResult]] = {"daemon": daemon, "shell": asyncio.run(diagnose(settings))}
    checks["shell"] += check_editors(
        settings.state_dir,
        daemon_file=Path(report["config"]) if report else None,
        platform=sys.platform,
        home=Path.home(),
        env=os.environ,
    )
    if as_json:
        rows = [dataclasses.asdict(check) | {"settings_of": of} for of, of_it in checks.items() for check in of_it]
        say_json(json.dumps(rows, ensure_ascii=False).encode())
    else:
        _print(checks)
    sys.exit(any(check.status == "fail" for of_it in checks.values() for check in of_it))


def _daemon_report(here: Settings) -> tuple[Mapping[str, Any] | None, CheckResult | None]:
    """The running daemon's report on its settings, or why it is not available; neither if none runs."""
    try:
        if running_pid(here.state_dir) is None:
            return None, None
        return operator_request("GET", "/settings"), None
    except (CommandFailedError, OSError) as error:
        message = f"not available: {error}"
        return None, CheckResult("settings", "warn", message, "run this command as the daemon's user")


def daemon_checks(report: Mapping[str, Any], here: Mapping[str, Any]) -> Iterator[CheckResult]:
    """One result per setting of the running daemon that is not the default, or is in ``_ALWAYS``. ``here`` is
    the report on this shell's settings.
    """
    place = report["config"] + ("" if report["config_exists"] else " (does not exist)")
    yield CheckResult("settings file", "ok", place)
    settings: Mapping[str, Mapping[str, str]] = report["settings"]
    for name, setting in settings.items():
        if setting["origin"] == "default" and name not in _ALWAYS:
            continue
        other = here["settings"].get(name, {}).get("value")
        message = f"{setting['value']} ({setting['origin']})"
        yield CheckResult(name, "ok", message if other in {None, setting["value"]} else f"{message}; here: {other}")
    for problem in report.get("problems", ()):  # an older daemon does not report them here
        yield CheckResult("problem", "warn", problem)
    if report["simulated"]:
        keys = "kimi_api_key, glm_api_key or a table [providers.NAME]"
        remedy = f"for real answers, set {keys} in {report['config']}, and restart the daemon"
        yield CheckResult("vendors", "ok", f"simulated; {remedy}")
    if reads_no_files(report):
        remedy = f"set workspace or client_workspaces in {report['config']}, or run: toold install EDITOR"
        yield CheckResult("files", "warn", "no file may be read: the workspace is the state directory", remedy)


def reads_no_files(report: Mapping[str, Any]) -> bool:
    """Whether a daemon with these settings can read no file: its only workspace is its state directory."""
    values: dict[str, str] = {name: setting["value"] for name, setting in report["settings"].items()}
    return values["client_workspaces"] != "true" and values["workspace"] == values["state_dir"]


def _print(checks: Mapping[Subject, list[CheckResult]]) -> None:
    if checks["daemon"]:
        say("The running daemon's settings:")
        print_checks(checks["daemon"])
        say("\nThe settings of this shell, with which a daemon started here would run:")
    print_checks(checks["shell"])


def print_checks(checks: list[CheckResult]) -> None:
    """One line per check, and its remedy below."""
    for check in checks:
        say(Styled(f"{check.status:4}", _COLOURS[check.status]), f"  {check.name}: {check.message}")
        if check.remedy:
            say(f"      → {check.remedy}")
