"""``toold doctor``: checks for problems and prints a remedy for each."""

import asyncio
import dataclasses
import json
import os
import sys
from pathlib import Path
from typing import Final

import click

from ..daemon import CheckResult, diagnose
from .command_settings import settings_with
from .editors import check_editors
from .terminal_output import Styled, say, say_json

_COLOURS: Final = {"ok": "green", "warn": "yellow", "fail": "red"}


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
def command(as_json: bool) -> None:
    """Check API keys, ports, files, SDKs, reachability of vendors and sources, and registered editors.

    Changes nothing. Exits with 1 if a check fails.
    """
    settings = settings_with({})
    checks = asyncio.run(diagnose(settings))
    checks += check_editors(settings.state_dir, platform=sys.platform, home=Path.home(), env=os.environ)
    if as_json:
        say_json(json.dumps([dataclasses.asdict(check) for check in checks], ensure_ascii=False).encode())
    else:
        for check in checks:
            _print(check)
    sys.exit(any(check.status == "fail" for check in checks))


def _print(check: CheckResult) -> None:
    say(Styled(f"{check.status:4}", _COLOURS[check.status]), f"  {check.name}: {check.message}")
    if check.remedy:
        say(f"      → {check.remedy}")
