"""Selects the type checker's findings that certainly fail at run time: calls that are not awaited, invalid arguments
of tools, tools that do not exist. Other findings are ignored. Pure.

Programs have no type annotations, and the engine checks no types, so most findings are not errors.
"""

import builtins
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from ..protocol.name_suggestions import close_names, did_you_mean
from .program import PreparedProgram, ProgramModule

MAX_REPORTED_ERRORS: Final = 10
"""The largest number of reported errors: searching similar names takes long if there are thousands."""
MAX_TYPE_ERROR_CHARS: Final = 500
_NOT_AWAITED: Final = frozenset(
    {
        "unused-awaitable",
        "not-subscriptable",
        "not-iterable",
        "unresolved-attribute",
        "unsupported-operator",
        "redundant-condition",
        "invalid-argument-type",
    }
)
_OF_ARGUMENTS: Final = frozenset({"missing-argument", "unknown-argument", "too-many-positional-arguments"})
_FUNCTION: Final = re.compile(r"of function `(\w+)`|to function `(\w+)`")
_WRONG_TYPE: Final = re.compile(r"Argument to function `(\w+)` is incorrect: Expected `(.+)`, found `(.+)`")
_NO_MEMBER: Final = re.compile(r"Module `(\w+)` has no member `(\w+)`")
_NO_NAME: Final = re.compile(r"Name `(\w+)` used when not defined")
_CALLED: Final = re.compile(r"\w+\s*(?:\.\s*(\w+)\s*)?\(")
_KNOWN_ELSEWHERE: Final = frozenset(dir(builtins)) | sys.stdlib_module_names
"""Unknown names among these may exist at run time, or are reported then."""
_SCALARS: Final = frozenset({"str", "int", "float", "bool", "bytes", "None"})
_GENERICS: Final = frozenset({"list", "dict", "tuple", "set"})


def find_type_errors(findings: str, prepared: PreparedProgram, modules: Mapping[str, ProgramModule]) -> list[str]:
    """A sentence with its line for each of the first ``MAX_REPORTED_ERRORS`` errors.

    ``findings`` is the checker's list as JSON.
    """
    type_errors: dict[str, None] = {}
    seen: set[tuple[int, str]] = set()
    lines = prepared.text.split("\n")
    for finding in json.loads(findings):
        row, message = finding["location"]["row"], finding["message"]
        if (row, message) in seen:
            continue
        seen.add((row, message))
        type_error = _type_error(finding, lines[row - 1], prepared, modules)
        if type_error:
            type_errors[type_error[:MAX_TYPE_ERROR_CHARS]] = None
        if len(type_errors) == MAX_REPORTED_ERRORS:
            break
    return list(type_errors)


def _type_error(
    finding: Mapping[str, Any], line: str, prepared: PreparedProgram, modules: Mapping[str, ProgramModule]
) -> str | None:
    code, message = finding["code"], finding["message"]
    row, column = finding["location"]["row"], finding["location"]["column"]
    source = line[column - 1 :]
    wrong = None
    if code in _NOT_AWAITED and _is_not_awaited(message):
        wrong = "a call is used before it is awaited; write `await` in front of it"
    elif code in _OF_ARGUMENTS and _tool(message, modules):
        wrong = message.replace("`", "'")
    elif code == "invalid-argument-type" and not source.startswith("*"):  # spread arguments have no known types
        wrong = _wrong_type(message, modules)
    elif code in {"unresolved-attribute", "unresolved-import"}:
        wrong = _no_member(message, modules)
    elif code == "unresolved-reference":
        wrong = _no_name(message, source, modules)
    return f"line {prepared.line(row)}: {wrong}" if wrong else None


def _is_not_awaited(message: str) -> bool:
    expected, _, actual = message.rpartition("found `")
    return "CoroutineType[" in actual and "Await" not in expected


def _tool(message: str, modules: Mapping[str, ProgramModule]) -> bool:
    named = _FUNCTION.search(message)
    return named is not None and any((named[1] or named[2]) in module.functions for module in modules.values())


def _wrong_type(message: str, modules: Mapping[str, ProgramModule]) -> str | None:
    parts = _WRONG_TYPE.fullmatch(message)
    if parts is None or not _tool(message, modules) or not is_certain(parts[2], parts[3]):
        return None
    return f"an argument of {parts[1]} should be {parts[2]}, not {parts[3]}"


def _no_member(message: str, modules: Mapping[str, ProgramModule]) -> str | None:
    parts = _NO_MEMBER.search(message)
    if parts is None or parts[1] not in modules:
        return None
    return f"there is no {parts[1]}.{parts[2]}; {_meant(parts[2], modules[parts[1]].functions)}"


def _no_name(message: str, source: str, modules: Mapping[str, ProgramModule]) -> str | None:
    parts, called = _NO_NAME.search(message), _CALLED.match(source)
    if parts is None or called is None or parts[1] in _KNOWN_ELSEWHERE:
        return None
    if called[1]:
        return f"there is no module {parts[1]!r}; {_meant(parts[1], modules)}"
    full = [f"{name}.{function}" for name, module in modules.items() for function in module.functions]
    exact = [name for name in full if name.endswith(f".{parts[1]}")]
    return f"there is no function {parts[1]!r}; {did_you_mean(exact) or _meant(parts[1], full)}"


def _meant(name: str, known: Iterable[str]) -> str:
    return did_you_mean(close_names(name, known)) or "read_stubs lists all functions."


def is_certain(expected: str, actual: str) -> bool:
    """Whether no value of the found type can be of the expected type, as far as JSON is concerned.

    A name that is not a Python type is a class of the stub: an object, whose fields are not checked here.
    """
    takes, members = list(_members(expected)), list(_members(actual))
    if not all(kind in _SCALARS | _GENERICS for kind, _ in members):
        return False
    return not any(_may_be(member, other) for member in members for other in takes)


def _may_be(member: tuple[str, str], taken: tuple[str, str]) -> bool:
    kind, value = member
    expected, wanted = taken
    if expected in {"Any", "object", "Unknown"}:
        return True
    if expected not in _SCALARS | _GENERICS:
        expected = "dict"
    same = kind == expected or (kind, expected) in {
        ("int", "float"),
        ("bool", "int"),
        ("bool", "float"),
        ("tuple", "list"),
        ("set", "list"),
    }
    return same and not (value and wanted and value != wanted)


def _members(named: str) -> Iterator[tuple[str, str]]:
    """The types of a union by their bare names; of a ``Literal`` each value with its type."""
    for member in _split(named, "|"):
        head, _, inner = member.partition("[")
        if head == "Literal":
            yield from ((_kind_of(value), value) for value in _split(inner.removesuffix("]"), ","))
        else:
            yield head, ""


def _kind_of(literal: str) -> str:
    if literal[:1] in {'"', "'"}:
        return "str"
    if literal[:1] in {"b", "T", "F", "N"}:
        return {"b": "bytes", "T": "bool", "F": "bool", "N": "None"}[literal[0]]
    return "int"


def _split(text: str, separator: str) -> list[str]:
    """The parts of a type between separators outside of brackets and quotes."""

    parts, depth, quote = [""], 0, ""
    for char in text:
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char in "[(":
            depth += 1
        elif char in "])":
            depth -= 1
        elif char == separator and not depth:
            parts.append("")
            continue
        parts[-1] += char
    return [part.strip() for part in parts]
