"""Checks arguments with templates before anything runs, as far as their values are known. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ...protocol.error_codes import InvalidArgumentsError
from ...shaping import ShapingError, Template, compile_template
from ..argument_binding import bind
from ..tool_definition import Tool

_WHOLE: Final = "arguments"
"""The field under which ``bind`` reports an error that concerns all arguments."""

THREAD_THRESHOLD_BYTES: Final = 64 * 1024
"""Larger values are searched for templates in a thread. At this size, a search takes up to about 10 ms."""

_UNKNOWN: Final = object()
_SAMPLE_VALUES: Final[tuple[Any, ...]] = ({}, [], "", 0, True)
"""One value of each JSON type except null."""

Problem = tuple[str, str]
"""The place of an error, such as ``args.files.0``, and its description."""


class ArgumentTemplate:
    """A value with templates, resolved as far as ``known`` (a template's context) allows.

    ``template`` resolves the value; None if a template cannot be parsed. ``problems`` lists the certain errors, with
    their places below ``place``.
    """

    def __init__(self, value: Any, known: Mapping[str, Any], place: str) -> None:
        self.problems: list[Problem] = []
        self.template: Template | None = None
        self._known = dict(known)
        self._place = place
        # The value: known references are resolved, unknown ones are ``_UNKNOWN``. Then the places of the unknown ones.
        self._value: Any = None
        self._unknown: list[tuple[str, ...]] = []
        try:
            self.template = compile_template(value)
            self.template.check_size(self._known)
        except ShapingError as error:
            self.problems.append((place, str(error)))
            return
        self._value = self._resolved(value, ())

    @property
    def names(self) -> frozenset[str]:
        """The names that the templates refer to."""
        return self.template.names if self.template else frozenset()

    def mismatches(self, tool: Tool) -> Iterator[Problem]:
        """The certain errors of this value as the tool's arguments. Values that are not known yet cause no error."""
        if self.template is None or () in self._unknown or self.problems:
            return
        if not isinstance(self._value, dict):
            yield self._place, "should be an object with the tool's arguments, or one template of such an object"
            return
        # An error is certain if it occurs with every sample value in place of the unknown values.
        wrong = _binding_errors(tool, _fill(self._value, None))
        for placeholder in _SAMPLE_VALUES if wrong and self._unknown else ():
            again = _binding_errors(tool, _fill(self._value, placeholder))
            wrong = {field: message for field, message in wrong.items() if again.get(field) == message}
        for field, message in wrong.items():
            yield (self._place if field == _WHOLE else f"{self._place}.{field}"), message

    def _resolved(self, value: Any, place: tuple[str, ...]) -> Any:
        if isinstance(value, dict):
            return {name: self._resolved(part, (*place, name)) for name, part in value.items()}
        if isinstance(value, list):
            return [self._resolved(part, (*place, str(index))) for index, part in enumerate(value)]
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


def _fill(value: Any, placeholder: Any) -> Any:
    """The value, with ``placeholder`` for every unknown part."""
    if isinstance(value, dict):
        return {name: _fill(part, placeholder) for name, part in value.items()}
    if isinstance(value, list):
        return [_fill(part, placeholder) for part in value]
    return placeholder if value is _UNKNOWN else value


def _binding_errors(tool: Tool, arguments: dict[str, Any]) -> Mapping[str, str]:
    """The errors that ``bind`` reports, by field."""
    try:
        bind(tool, arguments)
    except InvalidArgumentsError as error:
        fields: Mapping[str, str] = (error.details or {}).get("fields", {})
        return fields
    return {}
