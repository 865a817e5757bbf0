"""Arguments with templates: what of them is known before anything runs, and whether a tool could take them. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ...protocol.error_codes import InvalidArgumentsError
from ...shaping import ShapingError, Template, compile_template
from ..argument_binding import bind
from ..tool_definition import Tool

_WHOLE: Final = "arguments"
"""The field that ``bind`` tells an error of all arguments together under."""

MUCH_BYTES: Final = 64 * 1024
"""Of values, from which on their templates are looked for in a thread: some ten milliseconds' work, for short ones."""

_UNKNOWN: Final = object()
_FILLINGS: Final[tuple[Any, ...]] = ({}, [], "", 0, True)
"""One of each type, beside null."""

Problem = tuple[str, str]
"""The place of what is wrong, such as ``args.files.0``, and what is wrong there."""


class ArgumentTemplate:
    """A value with templates in it, taken apart as far as ``known`` (a template's context) says what they are.

    ``template`` fills it in; it is None where a template cannot be parsed. ``problems`` has what is certain to be
    wrong, each with its place below ``place``.
    """

    def __init__(self, value: Any, known: Mapping[str, Any], place: str) -> None:
        self.problems: list[Problem] = []
        self.template: Template | None = None
        self._known = dict(known)
        self._place = place
        # With what is known filled in, and ``_UNKNOWN`` where only a run can; those places.
        self._value: Any = None
        self._unknown: list[tuple[str, ...]] = []
        try:
            self.template = compile_template(value)
            self.template.check_size(self._known)
        except ShapingError as error:
            self.problems.append((place, str(error)))
            return
        self._value = self._filled(value, ())

    @property
    def names(self) -> frozenset[str]:
        """What it refers to."""
        return self.template.names if self.template else frozenset()

    def unfit(self, tool: Tool) -> Iterator[Problem]:
        """What is certain to be wrong with it as the tool's arguments; nothing of what is not known yet."""
        if self.template is None or () in self._unknown or self.problems:
            return
        if not isinstance(self._value, dict):
            yield self._place, "should be an object with the tool's arguments, or one template that is an object"
            return
        # What is said of a place whatever is put where nothing is known yet, is certain.
        wrong = _complaints(tool, _filled_up(self._value, None))
        for filling in _FILLINGS if wrong and self._unknown else ():
            again = _complaints(tool, _filled_up(self._value, filling))
            wrong = {field: said for field, said in wrong.items() if again.get(field) == said}
        for field, said in wrong.items():
            yield (self._place if field == _WHOLE else f"{self._place}.{field}"), said

    def _filled(self, value: Any, place: tuple[str, ...]) -> Any:
        if isinstance(value, dict):
            return {name: self._filled(part, (*place, name)) for name, part in value.items()}
        if isinstance(value, list):
            return [self._filled(part, (*place, str(index))) for index, part in enumerate(value)]
        if not isinstance(value, str):
            return value
        template = compile_template(value)
        if template.names <= self._known.keys():
            try:
                return template.resolve(self._known)
            except ShapingError as error:
                self.problems.append((".".join((self._place, *place)), str(error)))
        self._unknown.append(place)
        return _UNKNOWN


def _filled_up(value: Any, filling: Any) -> Any:
    """The value, with the same ``filling`` for all that is unknown."""
    if isinstance(value, dict):
        return {name: _filled_up(part, filling) for name, part in value.items()}
    if isinstance(value, list):
        return [_filled_up(part, filling) for part in value]
    return filling if value is _UNKNOWN else value


def _complaints(tool: Tool, arguments: dict[str, Any]) -> Mapping[str, str]:
    """What ``bind`` says is wrong, by field."""
    try:
        bind(tool, arguments)
    except InvalidArgumentsError as error:
        fields: Mapping[str, str] = (error.details or {}).get("fields", {})
        return fields
    return {}
