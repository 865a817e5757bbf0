"""The shipped catalog's models of the presets, from ``preset_models.toml``, with their source and date."""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final

from .model import Model
from .model_table import ModelCatalogError, read_model

FILE: Final = "preset_models.toml"


def preset_models(preset: str) -> Mapping[str, Model]:
    """Returns the models of a preset by the vendor's names. The file is read only if a provider is configured."""
    return _catalog().get(preset, {})


@cache
def _catalog() -> Mapping[str, Mapping[str, Model]]:
    return parse_presets(files(__package__).joinpath(FILE).read_text(encoding="utf-8"))


def parse_presets(toml: str) -> dict[str, dict[str, Model]]:
    """Parses one ``[PRESET]`` table per preset, with ``source``, ``date`` and ``models`` by the vendor's name.

    Raises:
        ModelCatalogError: the text is not TOML, or a table is invalid.
    """
    try:
        document = tomllib.loads(toml)
    except tomllib.TOMLDecodeError as error:
        raise ModelCatalogError(f"{FILE} is not TOML: {error}") from error
    return {preset: _models(preset, table) for preset, table in document.items()}


def _models(preset: str, table: Mapping[str, Any]) -> dict[str, Model]:
    common = {key: value for key, value in table.items() if key != "models"}
    return {
        name: read_model({"id": name, "provider": preset, **common, **model}, FILE)
        for name, model in table.get("models", {}).items()
    }
