"""Selects operations of an API document by globs: ``include`` and ``exclude`` of a source. Pure."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import translate
from functools import cache
from typing import Annotated, Final, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

MAX_GLOBS: Final = 200
"""The maximum number of globs of one key. Each is compared with each operation."""
MAX_FILTERS: Final = 50
"""The maximum number of tables of ``include`` or ``exclude``."""

_Glob = Annotated[str, StringConstraints(min_length=1, max_length=500)]
_Globs = Annotated[tuple[_Glob, ...], Field(min_length=1, max_length=MAX_GLOBS)]


@dataclass(frozen=True, slots=True)
class OperationFacts:
    """The values of an operation with which globs are compared."""

    operation: str
    """The operationId, or the name that toold gives to an operation without one."""
    tags: tuple[str, ...]
    path: str
    method: str


class OperationFilter(BaseModel):
    """Matches an operation if at least one glob of each key that is set matches."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    operations: _Globs | None = None
    tags: _Globs | None = None
    paths: _Globs | None = None
    methods: _Globs | None = None

    @model_validator(mode="after")
    def _not_empty(self) -> Self:
        if not self.model_fields_set:
            raise PydanticCustomError("operation_filter", "must have operations, tags, paths or methods")
        return self

    def matches(self, facts: OperationFacts) -> bool:
        return all(_any_matches(globs, values) for _, globs, values in self._compared(facts))

    def matched_globs(self, facts: OperationFacts) -> Iterator[tuple[str, str]]:
        """Yields the key and the text of each glob that matches a value of the operation, even if other keys do not
        match."""
        for key, globs, values in self._compared(facts):
            yield from ((key, glob) for glob in globs if _any_matches((glob,), values))

    def globs(self) -> Iterator[tuple[str, str]]:
        """Yields the key and the text of each glob."""
        for key, globs, _ in self._compared(OperationFacts("", (), "", "")):
            yield from ((key, glob) for glob in globs)

    def _compared(self, facts: OperationFacts) -> Iterator[tuple[str, tuple[str, ...], tuple[str, ...]]]:
        """Yields each key that is set, its globs, and the operation's values for it."""
        pairs: Mapping[str, tuple[tuple[str, ...] | None, tuple[str, ...]]] = {
            "operations": (self.operations, (facts.operation,)),
            "tags": (self.tags, facts.tags),
            "paths": (self.paths, (facts.path,)),
            "methods": (self.methods and tuple(glob.upper() for glob in self.methods), (facts.method.upper(),)),
        }
        for key, (globs, values) in pairs.items():
            if globs is not None:
                yield key, globs, values


def _any_matches(globs: Iterable[str], values: Iterable[str]) -> bool:
    return any(_compiled(glob).match(value) for value in values for glob in globs)


@cache
def _compiled(glob: str) -> re.Pattern[str]:
    """Compiles a glob. Cached here, because ``fnmatchcase`` caches few globs, and compiling a glob takes longer than
    matching all operations of a document.
    """
    return re.compile(translate(glob))


def _several(value: object) -> object:
    """Converts a single table to a list of one."""
    return (value,) if isinstance(value, Mapping) else value


OperationFilters = Annotated[tuple[OperationFilter, ...], Field(max_length=MAX_FILTERS), BeforeValidator(_several)]
"""A table, or a list of tables; one of them has to match."""


class OperationSelection:
    """Selects the operations of one document, and records which globs matched no operation."""

    def __init__(self, include: Sequence[OperationFilter], exclude: Sequence[OperationFilter]) -> None:
        self._include = include
        self._exclude = exclude
        self._unmatched = {
            (setting, *glob): None
            for setting, filters in (("include", include), ("exclude", exclude))
            for each in filters
            for glob in each.globs()
        }
        self.excluded = 0
        """The number of operations that were not selected."""

    def selects(self, facts: OperationFacts) -> bool:
        """Whether an operation is included and not excluded."""
        for setting, filters in (("include", self._include), ("exclude", self._exclude)):
            for each in filters:
                for glob in each.matched_globs(facts):
                    self._unmatched.pop((setting, *glob), None)
        selected = not self._include or any(each.matches(facts) for each in self._include)
        selected = selected and not any(each.matches(facts) for each in self._exclude)
        self.excluded += not selected
        return selected

    def unmatched(self) -> Iterator[tuple[str, str]]:
        """Yields the setting and its problem for each glob that matched no operation, which is often a typo."""
        for setting, key, glob in self._unmatched:
            yield setting, f"no operation matches {glob!r} in {key}"
