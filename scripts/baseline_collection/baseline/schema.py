"""The JSON Schema of a record, generated from the structs and the docstrings of their fields."""

import ast
import inspect
import json
import textwrap
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from . import record

SCHEMA_ID: Final = f"urn:toold:baseline-record:{record.FORMAT}"


def schema() -> dict[str, Any]:
    """The schema (2020-12) of a record. Each field's description is the text below it in ``record``."""
    made: dict[str, Any] = json.loads(msgspec.json.encode(msgspec.json.schema(record.Record)))
    for name, definition in made["$defs"].items():
        for field, words in _field_words(getattr(record, name)):
            definition["properties"][field]["description"] = words
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": SCHEMA_ID, **made}


def _field_words(struct: type) -> Iterator[tuple[str, str]]:
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(struct))).body
    assert isinstance(definition, ast.ClassDef)  # noqa: S101 - it is the source of one
    for field, below in zip(definition.body, definition.body[1:], strict=False):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(words))):
                yield name, " ".join(words.split())
