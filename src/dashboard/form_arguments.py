"""Arguments from the values of a tool's form. Pure.

The names of values are paths: ``/options/0/text``. Names with a ``|`` after the path are not arguments: ``/value|`` is
the chosen option of a union, ``/value|1`` its second option, ``/options|+`` the other parts of an object as JSON.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from .argument_form import FormField

WHOLE: Final = "|json"
"""The name of the field that replaces the form: all arguments as JSON."""
MAX_ITEMS: Final = 1_000
"""The maximum number of items of one list of the form."""
_ABSENT: Final = object()


@dataclass(slots=True)
class FormArguments:
    """The values of a form."""

    arguments: dict[str, Any] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    """Values that cannot be read, one sentence each."""


def child_name(name: str, key: str) -> str:
    """The name of a part of an object, or of an item of a list."""
    return f"{name}/{key.replace('~', '~0').replace('/', '~1').replace('|', '~2')}"


def form_arguments(form: FormField, values: Mapping[str, str]) -> FormArguments:
    """Reads the values of a form. An empty field is not sent, unless it is a required text."""
    read = FormArguments()
    whole = values.get(WHOLE, "").strip()
    if whole:
        value = _json(WHOLE, whole, read)
        if isinstance(value, dict):
            read.arguments = value
        elif value is not _ABSENT:
            read.problems.append("The arguments as JSON must be an object: {…}.")
        return read
    value = _group(form, "", values, read)
    read.arguments = value if isinstance(value, dict) else {}
    return read


def _value(part: FormField, name: str, values: Mapping[str, str], read: FormArguments) -> Any:
    """The value of a field, or ``_ABSENT``."""
    match part.kind:
        case "group":
            return _group(part, name, values, read)
        case "list":
            return _list(part, name, values, read)
        case "union":
            return _option(part, name, values, read)
    text = values.get(name)
    if text is None or (not text.strip() and part.kind not in {"text", "long_text", "secret", "content"}):
        return _nothing(part)
    if not text:
        return "" if part.required and not part.nullable and part.kind != "content" else _nothing(part)
    return _scalar(part, name, text, read)


def _nothing(part: FormField) -> Any:
    return None if part.required and part.nullable else _ABSENT


def _scalar(part: FormField, name: str, text: str, read: FormArguments) -> Any:
    match part.kind:
        case "number":
            return _number(part, name, text.strip(), read)
        case "boolean":
            return text == "true"
        case "choice":
            if text in map(str, range(len(part.choices))):
                return part.choices[int(text)]
            read.problems.append(f"{shown_name(name)}: choose one of the values.")
            return _ABSENT
        case "paths":
            return [line.strip() for line in text.splitlines() if line.strip()]
        case "json":
            return _json(name, text, read)
    # Browsers send line breaks of a form as CRLF.
    return text.replace("\r\n", "\n")


def _number(part: FormField, name: str, text: str, read: FormArguments) -> Any:
    try:
        if text.lstrip("+-").isdigit() and len(text) < 400:
            return int(text)
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or (part.whole and not number.is_integer()):
        kind = "a whole number" if part.whole else "a number"
        read.problems.append(f"{shown_name(name)}: must be {kind}.")
        return _ABSENT
    return int(number) if part.whole else number


def _json(name: str, text: str, read: FormArguments) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        why = f"{error.msg} at line {error.lineno}" if isinstance(error, json.JSONDecodeError) else "it is not JSON"
        place = "The arguments" if name == WHOLE else shown_name(name)
        read.problems.append(f"{place}: must be JSON ({why}).")
        return _ABSENT


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def _group(part: FormField, name: str, values: Mapping[str, str], read: FormArguments) -> Any:
    found: dict[str, Any] = {}
    for inner in part.fields:
        value = _value(inner, child_name(name, inner.key), values, read)
        if value is not _ABSENT:
            found[inner.key] = value
    others = values.get(f"{name}|+", "").strip()
    if others:
        more = _json(name, others, read)
        if isinstance(more, dict):
            found = {**more, **found}
        elif more is not _ABSENT:
            read.problems.append(f"{shown_name(name)}: other parts must be a JSON object.")
    return found if found or part.required else _nothing(part)


def _list(part: FormField, name: str, values: Mapping[str, str], read: FormArguments) -> Any:
    if part.item is None:
        return _ABSENT
    begin = f"{name}/"
    numbers = set()
    for key in values:
        if key.startswith(begin):
            step = key[len(begin) :].partition("/")[0].partition("|")[0]
            if step.isascii() and step.isdigit() and len(step) < 7:
                numbers.add(int(step))
    if len(numbers) > MAX_ITEMS:
        read.problems.append(f"{shown_name(name)}: at most {MAX_ITEMS} items.")
    items = []
    for number in sorted(numbers)[:MAX_ITEMS]:
        value = _value(part.item, f"{name}/{number}", values, read)
        if value is not _ABSENT:
            items.append(value)
    return items if items or part.required else _nothing(part)


def _option(part: FormField, name: str, values: Mapping[str, str], read: FormArguments) -> Any:
    chosen = values.get(f"{name}|", "")
    if not chosen:
        return _nothing(part)
    if chosen not in map(str, range(len(part.options))):
        read.problems.append(f"{shown_name(name)}: choose one of the kinds.")
        return _ABSENT
    return _value(part.options[int(chosen)], f"{name}|{chosen}", values, read)


def shown_name(name: str) -> str:
    """The path of a value in readable form: ``options[0].text``."""
    shown = ""
    for step in name.split("/")[1:]:
        key = step.partition("|")[0].replace("~2", "|").replace("~1", "/").replace("~0", "~")
        shown += f"[{key}]" if key.isdigit() else f".{key}"
    return shown.removeprefix(".") or "the arguments"
