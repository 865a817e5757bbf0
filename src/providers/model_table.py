"""Reads one model's table of the shipped catalog. Pure."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import msgspec

from ..protocol.name_suggestions import close_names, did_you_mean
from .model import LongPromptPrice, Model, ModelPrice


class ModelCatalogError(ValueError):
    """A file of the catalog is invalid; the message names the model and the field."""


def read_model(table: Mapping[str, Any], file: str) -> Model:
    """Converts one model's table, strictly.

    Raises:
        ModelCatalogError: the table has an unknown key, lacks a key, or has an invalid value.
    """
    where = f"{file}, model {table.get('id', '(without id)')!r}"
    _refuse_unknown_keys(table, Model, where)
    _refuse_unknown_keys(table.get("price", {}), ModelPrice, f"{where}, price")
    _refuse_unknown_keys(table.get("price", {}).get("long_prompt", {}), LongPromptPrice, f"{where}, price.long_prompt")
    try:
        model = msgspec.convert(table, Model)
    except msgspec.ValidationError as error:
        raise ModelCatalogError(f"{where}: {error}") from error
    for field, tokens in (("context_window", model.context_window), ("max_output", model.max_output)):
        if tokens is not None and tokens <= 0:
            raise ModelCatalogError(f"{where}: {field} must be a positive number of tokens, not {tokens}")
    if model.kind == "embedding" and (model.tools or model.max_output is not None):
        raise ModelCatalogError(f"{where}: an embedding model needs tools = false, and has no max_output")
    if model.efforts and model.thinking == "none":
        raise ModelCatalogError(f'{where}: it has efforts, but thinking = "none"')
    if (model.efforts or model.web_search or model.structured != "none") and not model.capability_source:
        raise ModelCatalogError(f"{where}: efforts, web_search and structured need a capability_source")
    return model


def _refuse_unknown_keys(table: Mapping[str, Any], cls: type[Model | ModelPrice | LongPromptPrice], where: str) -> None:
    known = {field.name for field in fields(cls)}
    for key in table:
        if key not in known:
            hint = did_you_mean(close_names(key, known, n=1)) or f"known: {', '.join(sorted(known))}"
            raise ModelCatalogError(f"{where}: unknown key {key!r}; {hint}")
