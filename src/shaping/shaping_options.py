"""Validates the options of a call before anything runs, and creates the plan. All errors are reported together."""

import math
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar, get_args

from ..protocol.error_codes import InvalidArgumentsError
from ..protocol.name_suggestions import as_sentence, close_names, did_you_mean
from .aggregation import FIGURES, Aggregation
from .filter_conditions import Filter
from .filter_parser import parse_filter
from .shaping_errors import LanguageError
from .shaping_plan import ReturnMode, ShapingPlan
from .sort_order import SortKey
from .value_kinds import is_number
from .value_paths import ValuePath, parse_path

_HINTS: Final = {
    "file_path": "return_mode 'file' returns a handle, which read_result reads; callers do not name paths",
}
"""Options of other servers, and what to write instead."""
MAX_PATHS: Final = 100
"""The largest number of paths in one option."""

_PATHS: Final = "a list of paths, such as ['id', 'author.name']"
_AGGREGATE_NAMES: Final = ("group_by", "count", *FIGURES)
Parsed = TypeVar("Parsed")


def plan(options: Any, name: str = "options") -> ShapingPlan:
    """The plan that ``options`` describe; ``name`` is the caller's name for them.

    ``{"at", "filter", "sort", "limit", "select_fields", "aggregate", "return_mode"}``, each optional; null equals
    absent. A negative limit is 0, and a fraction is truncated.

    Raises:
        InvalidArgumentsError: ``details.fields`` has every invalid option with its error.
    """
    parser = _OptionsParser()
    found: dict[str, Any] = {}
    if isinstance(options, dict):
        for option, value in options.items():
            if option not in _READERS:
                hint = _HINTS.get(option) or _instead(option, _READERS)
                parser.add_problem(option, f"is not an option; {hint}")
            elif value is not None:
                found[option] = _READERS[option](parser, value, option)
    elif options is not None:
        parser.add_problem("", f"should be an object with any of {', '.join(_READERS)}")
    if parser.problems:
        fields = {".".join(filter(None, (name, place))) or "options": text for place, text in parser.problems.items()}
        message = "; ".join(f"{place}: {text}" for place, text in fields.items())
        raise InvalidArgumentsError(as_sentence(message), details={"fields": fields})
    return ShapingPlan(**found)


class _OptionsParser:
    """Parses options and collects problems by their place in the options."""

    def __init__(self) -> None:
        self.problems: dict[str, str] = {}

    def add_problem(self, place: str, problem: str) -> None:
        self.problems[place] = problem

    def parsed(self, parse: Callable[[str], Parsed], value: Any, place: str, expected: str) -> Parsed | None:
        """The parsed text; None if it is invalid."""
        if not isinstance(value, str):
            self.add_problem(place, f"should be {expected}")
            return None
        try:
            return parse(value)
        except LanguageError as error:
            self.add_problem(place, str(error))
            return None

    def path(self, value: Any, place: str) -> ValuePath | None:
        return self.parsed(parse_path, value, place, "a path, such as 'data.items'")

    def filter(self, value: Any, place: str) -> Filter | None:
        return self.parsed(parse_filter, value, place, "text, such as \"status = 'open'\"")

    def paths(self, value: Any, place: str) -> tuple[ValuePath, ...]:
        found = self.each(value, place, _PATHS, self.path)
        if value == []:
            self.add_problem(place, "names no field; omit it, or write " + _PATHS)
        return found

    def sort(self, value: Any, place: str) -> tuple[SortKey, ...]:
        expected = "a list of fields, '-field' for descending, such as ['-created_at', 'name']"
        return self.each(value, place, expected, self.sort_key)

    def sort_key(self, value: Any, place: str) -> SortKey | None:
        if not isinstance(value, str):
            self.add_problem(place, "should be a field, '-field' for descending")
            return None
        path = self.path(value.removeprefix("-"), place)
        return SortKey(path, descending=value.startswith("-")) if path else None

    def each(
        self, value: Any, place: str, expected: str, read: Callable[[Any, str], Parsed | None]
    ) -> tuple[Parsed, ...]:
        """The list's elements, each parsed separately, without duplicates."""
        if not isinstance(value, list) or len(value) > MAX_PATHS:
            most = f", of at most {MAX_PATHS}" if isinstance(value, list) else ""
            self.add_problem(place, f"should be {expected}{most}")
            return ()
        found = [read(item, f"{place}.{index}") for index, item in enumerate(value)]
        return tuple(dict.fromkeys(item for item in found if item is not None))

    def limit(self, value: Any, place: str) -> int | None:
        if not is_number(value) or not math.isfinite(value):
            self.add_problem(place, "should be a number of rows, such as 20")
            return None
        return max(0, math.floor(value))

    def aggregate(self, value: Any, place: str) -> Aggregation | None:
        if not isinstance(value, dict) or not value:
            example = '{"group_by": ["status"], "count": true, "sum": ["amount"]}'
            self.add_problem(place, f"should be an object such as {example}")
            return None
        unknown = [name for name in value if name not in _AGGREGATE_NAMES]
        for name in unknown:
            self.add_problem(f"{place}.{name}", f"is not an aggregate; {_instead(name, _AGGREGATE_NAMES)}")
        count = value.get("count")
        if not (count is None or isinstance(count, bool)):
            self.add_problem(f"{place}.count", "should be true; it counts rows and takes no field")
        given = {name: value[name] for name in ("group_by", *FIGURES) if value.get(name) is not None}
        paths = {name: self.paths(item, f"{place}.{name}") for name, item in given.items()}
        group_by = paths.pop("group_by", ())
        if not (count or given or unknown):
            self.add_problem(place, f"is empty; possible are {', '.join(_AGGREGATE_NAMES)}")
        return Aggregation(group_by, count=bool(count) or not paths, figures=paths)

    def return_mode(self, value: Any, place: str) -> Any:
        modes = get_args(ReturnMode)
        if value not in modes:
            self.add_problem(place, f"should be one of {', '.join(modes)}")
        return value


_READERS: Final[Mapping[str, Callable[[_OptionsParser, Any, str], Any]]] = {
    "at": _OptionsParser.path,
    "filter": _OptionsParser.filter,
    "sort": _OptionsParser.sort,
    "limit": _OptionsParser.limit,
    "select_fields": _OptionsParser.paths,
    "aggregate": _OptionsParser.aggregate,
    "return_mode": _OptionsParser.return_mode,
}
"""Every option with its parser."""


def _instead(name: str, known: Any) -> str:
    return did_you_mean(close_names(name, known, n=1)) or f"possible are {', '.join(known)}"
