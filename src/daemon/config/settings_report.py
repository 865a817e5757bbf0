"""The settings as text for the operator, with the origin of each value, and without secrets. Pure."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, SecretStr

from ...audit import redact_text
from .settings import Settings


def settings_report(settings: Settings) -> dict[str, Any]:
    """The report: ``settings`` (name → ``value`` and ``origin``), ``config`` (the settings file, whether or not it
    exists), ``config_exists``, and ``simulated`` (whether the simulator replaces the vendors).
    """
    place = settings.config_place
    return {
        "config": None if place is None else str(place),
        "config_exists": settings.config is not None,
        "simulated": settings.simulated,
        "settings": {
            name: {"value": _shown(name, getattr(settings, name)), "origin": settings.origins.get(name, "default")}
            for name in Settings.model_fields
        },
    }


def _shown(name: str, value: object) -> str:
    match value:
        case None:
            return "not set"
        case SecretStr():
            return "set"
        case bool():
            return str(value).lower()
        case int() | float():
            return f"{value:g}" if isinstance(value, float) else str(value)
        case Mapping() if name == "daily_budget":
            return ", ".join(f"{amount:g} {currency}" for currency, amount in value.items()) or "none"
        case Mapping():  # the tables may have secrets: only their names
            return ", ".join(map(str, value)) or "none"
        case tuple() if name == "bind":
            return f"{len(value)} arguments" if value else "none"
        case tuple():
            return redact_text(", ".join(map(str, value))) or "none"
        # A single table: the settings in it that differ from the defaults.
        case BaseModel() if type(value).__str__ is BaseModel.__str__:
            names = [key for key, kept in value if kept != type(value).model_fields[key].default]
            return ", ".join(names) or "none"
        case _:
            return redact_text(str(value))
