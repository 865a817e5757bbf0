"""Keywords of JSON Schema with bounded time, in place of keywords of jsonschema that could take too long. Pure."""

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from typing import Any, Final

from jsonschema import ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import extend

from ..shaping import PatternError, compile_pattern


class TooManyStepsError(Exception):
    """The check evaluated more keywords than ``limit_steps`` permits: references can multiply them without end."""


class _Steps(threading.local):
    """The number of keywords that the check in this thread may still evaluate."""

    left = 0


_steps: Final = _Steps()

_Keyword = Callable[[Validator, Any, Any, Any], Iterable[ValidationError] | None]


def limit_steps(limit: int) -> None:
    """Limits the next check in this thread to this many evaluations of a keyword."""
    _steps.left = limit


def _counted(keyword: _Keyword) -> _Keyword:
    def evaluate(validator: Validator, value: Any, instance: Any, schema: Any) -> Iterable[ValidationError] | None:
        _steps.left -= 1
        if _steps.left < 0:
            raise TooManyStepsError
        return keyword(validator, value, instance, schema)

    return evaluate


@cache
def with_bounded_keywords(validator_class: Any) -> Any:
    """The class of a JSON Schema draft, with some keywords replaced and all of them counted.

    A check raises ``TooManyStepsError`` beyond ``limit_steps``, which is set before each check.
    """
    keywords: dict[str, _Keyword] = {
        **validator_class.VALIDATORS,
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
        "unevaluatedProperties": _not_checked,
        "unevaluatedItems": _not_checked,
        "uniqueItems": _unique_items,
    }
    counted = {name: _counted(keyword) for name, keyword in keywords.items()}
    return extend(validator_class, counted)  # type: ignore[no-untyped-call] # jsonschema's stubs leave it open


def _not_checked(*_: Any) -> Iterator[ValidationError]:
    return iter(())


@lru_cache(maxsize=1024)
def _matcher(pattern: str) -> Callable[[str], bool] | None:
    try:
        return compile_pattern(pattern)
    except PatternError:
        return None


def _fits(pattern: str, text: str) -> bool | None:
    """Whether the text matches the pattern; None if RE2 does not support the pattern."""
    matches = _matcher(pattern)
    return None if matches is None else matches(text)


def _pattern(_: Validator, pattern: Any, instance: Any, __: Any) -> Iterator[ValidationError]:
    if isinstance(instance, str) and _fits(pattern, instance) is False:
        yield ValidationError("does not match")


def _pattern_properties(validator: Validator, patterns: Any, instance: Any, _: Any) -> Iterator[ValidationError]:
    if isinstance(instance, dict):
        for pattern, schema in patterns.items():
            for name, value in instance.items():
                if _fits(pattern, name):
                    yield from validator.descend(value, schema, path=name, schema_path=pattern)  # type: ignore[attr-defined] # of jsonschema's validators, and not of the protocol


def _additional_properties(validator: Validator, rest: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if not isinstance(instance, dict):
        return
    for name in list(_extras(instance, schema)):
        if rest is False:
            yield ValidationError("not allowed", path=[name])
        else:
            yield from validator.descend(instance[name], rest, path=name)  # type: ignore[attr-defined] # as above


def _extras(instance: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[str]:
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    for name in instance:
        if name not in known and not any(_fits(pattern, name) in {True, None} for pattern in patterns):
            yield name


def _unique_items(_: Validator, unique: Any, instance: Any, __: Any) -> Iterator[ValidationError]:
    if unique is True and isinstance(instance, list):
        different = {json.dumps(item, sort_keys=True) for item in instance}
        if len(different) < len(instance):
            yield ValidationError("has equal items")
