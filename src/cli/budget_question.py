"""Asks for a daily budget when a daemon with real vendors starts for the first time on a terminal."""

from pathlib import Path
from typing import Final

import click
from pydantic import TypeAdapter, ValidationError

from ..daemon import Settings
from ..daemon.config.amounts import Amounts
from ..daemon.persistence.state_directory import DATABASE_FILE
from .file_changes import content
from .settings_file import SettingsFile
from .terminal_output import say

_QUESTION: Final = "Daily budget at the vendors, such as 5 USD (Enter for none)"


def needs_budget_question(settings: Settings, *, terminal: bool) -> bool:
    """Whether to ask: a person can answer, calls will cost money without a limit, and no daemon ran here before."""
    if not terminal or settings.simulated or settings.daily_budget:
        return False
    return not (settings.state_dir / DATABASE_FILE).exists()


def ask_budget(place: Path) -> bool:
    """Ask for the budget, and write it to the settings file. Returns whether the file was changed."""
    while answer := click.prompt(_QUESTION, default="", show_default=False).strip():
        try:
            amounts = TypeAdapter(Amounts).validate_python(answer)
        except ValidationError as error:
            say(error.errors(include_url=False)[0]["msg"])
            continue
        file = SettingsFile(place, content(place))
        text = file.with_key("daily_budget", [f"{amount:g} {currency}" for currency, amount in amounts.items()])
        file.check(text)
        file.write(text)
        say(f"Wrote daily_budget to {place}.")
        return True
    return False
