"""Templates: JSON values with references to other values.

``{{step.field}}``, ``{{ items[0].name }}``, ``{{input.x | default('none')}}``. A text that consists of one template
becomes the value itself, of any type; in other texts the value is inserted as text, objects and lists as JSON.
Inserted values are not searched for templates again. ``\\{{`` means ``{{``; two backslashes before ``{{`` mean one
backslash, followed by a template.
"""

import json
import math
import re
from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from .shaping_errors import LanguageError, MissingValueError, ShapingError
from .text_cursor import TextCursor
from .value_kinds import weight
from .value_paths import MISSING, NO_PARSED_TEXTS, ParsedTexts, ValuePath, explain_missing, find_value, read_path

MAX_DEPTH: Final = 200
"""The deepest nesting of lists and objects."""
MAX_FILLED_BYTES: Final = 20 * 1024**2
"""The size of the largest frame. Without a bound, a value used ten times per step would grow to 10⁸ in eight steps."""

Context = dict[str, Any]
"""The values that templates refer to, by the first name of their paths."""

_EXAMPLE: Final = "{{fetch.items[0].id}} or {{input.name | default('none')}}"
_WORD: Final = re.compile(r"\w*")
_Fill = Callable[[Context, ParsedTexts], Any]


class Template:
    """A value with its templates parsed; ``paths`` are the distinct references, in order."""

    __slots__ = ("_fill", "_uses", "paths")

    def __init__(self, uses: dict[ValuePath, int], fill: _Fill) -> None:
        self.paths = tuple(uses)
        self._uses = uses
        self._fill = fill

    @property
    def names(self) -> frozenset[str]:
        """The first name of every path: the context must have them, unless there is a default."""
        return frozenset(str(path.steps[0]) for path in self.paths)

    def resolve(self, context: Context, parsed: ParsedTexts = NO_PARSED_TEXTS) -> Any:
        """The value with all templates resolved. It shares parts with the context.

        A path into a text of ``parsed`` continues in the JSON parsed from it; a path to the text itself yields the
        text.

        Raises:
            MissingValueError: a value is missing and has no default.
            ShapingError: as raised by ``check_size``, or a value is nested too deeply.
        """
        self.check_size(context, parsed)
        try:
            return self._fill(context, parsed)
        except RecursionError:
            raise ShapingError("a value that a template refers to is nested too deeply to be written as text") from None

    def check_size(self, context: Context, parsed: ParsedTexts = NO_PARSED_TEXTS) -> None:
        """Calculate the size of the resolved value without resolving it; missing values count as nothing.

        Raises:
            ShapingError: it exceeds ``MAX_FILLED_BYTES``.
        """
        bytes_left = MAX_FILLED_BYTES
        for path, times in self._uses.items():
            bytes_left -= times * weight(find_value(path, context, parsed), bytes_left // times)
            if bytes_left < 0:
                what = f"the values that templates insert exceed {MAX_FILLED_BYTES:,} bytes together, with {path}"
                raise ShapingError(f"{what}; refer to smaller parts, or less often")


class _Reference(msgspec.Struct, frozen=True):
    path: ValuePath
    default: Any = MISSING

    def __call__(self, context: Context, parsed: ParsedTexts) -> Any:
        found = find_value(self.path, context, parsed)
        if found is not MISSING:
            return found
        if self.default is MISSING:
            hint = f"{{{{{self.path} | default(null)}}}} yields null instead"
            raise MissingValueError(f"{explain_missing(self.path, context, parsed)}; {hint}", str(self.path))
        return self.default


class _Constant(msgspec.Struct, frozen=True):
    """A value without templates."""

    value: Any

    def __call__(self, context: Context, parsed: ParsedTexts) -> Any:  # noqa: ARG002  # the signature of _Fill
        return self.value


def compile_template(value: Any) -> Template:
    """Parse the templates in all texts of a JSON value. Field names cannot be templates.

    Raises:
        LanguageError: a template cannot be parsed, or is in a field name; the message names the text.
    """
    uses: dict[ValuePath, int] = {}
    fill = _compiled(value, (), uses)
    return Template(uses, fill)


def _compiled(value: Any, place: tuple[str | int, ...], uses: dict[ValuePath, int]) -> _Fill:
    """The function that resolves the value at ``place``; adds its references to ``uses``."""
    if not isinstance(value, str | list | dict):
        return _Constant(value)
    if len(place) > MAX_DEPTH:
        raise LanguageError(f"a value with templates is nested at most {MAX_DEPTH} deep", "", 1, _EXAMPLE)
    if isinstance(value, str):
        return _text(_parts(value, place), uses)
    if isinstance(value, list):
        items = [_compiled(item, (*place, index), uses) for index, item in enumerate(value)]
        return _folded(items, lambda context, parsed: [fill(context, parsed) for fill in items])
    fields = {_field_name(name, place): _compiled(item, (*place, name), uses) for name, item in value.items()}
    return _folded(
        fields.values(), lambda context, parsed: {name: fill(context, parsed) for name, fill in fields.items()}
    )


def _folded(fills: Iterable[_Fill], fill: _Fill) -> _Fill:
    """A constant if all parts are constants."""
    return _Constant(fill({}, NO_PARSED_TEXTS)) if all(isinstance(part, _Constant) for part in fills) else fill


def _field_name(name: str, place: tuple[str | int, ...]) -> str:
    parts = _parts(name, place)
    if any(isinstance(part, _Reference) for part in parts):
        what = "a field name cannot contain a template; write \\{{ for a literal {{"
        raise LanguageError(_placed(what, place), name, 1, '{"name": "{{input.name}}"}')
    return "".join(map(str, parts))


def _text(parts: list[str | _Reference], uses: dict[ValuePath, int]) -> _Fill:
    references = [part for part in parts if isinstance(part, _Reference)]
    for reference in references:
        uses[reference.path] = uses.get(reference.path, 0) + 1
    if not references:
        return _Constant("".join(map(str, parts)))
    if parts == references and len(parts) == 1:
        return references[0]
    return lambda context, parsed: "".join(
        part if isinstance(part, str) else _as_text(part(context, parsed)) for part in parts
    )


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _parts(text: str, place: tuple[str | int, ...]) -> list[str | _Reference]:
    """The parts of a text: the text between templates, and the templates."""
    parts: list[str | _Reference] = []
    done = 0
    while (opening := text.find("{{", done)) >= 0:
        before = text[done:opening]
        plain = before.rstrip("\\")
        backslashes = len(before) - len(plain)
        parts.append(plain + "\\" * (backslashes // 2))
        done = opening + 2
        if backslashes % 2:
            parts.append("{{")
            continue
        reader = TextCursor(text, _EXAMPLE, at=done)
        try:
            parts.append(_reference(reader))
        except LanguageError as error:
            raise LanguageError(_placed(error.what, place), text, error.position, error.example) from None
        done = reader.at
    parts.append(text[done:])
    return [part for part in parts if part != ""]


def _placed(what: str, place: tuple[str | int, ...]) -> str:
    return f"{ValuePath(place)}: {what}" if place else what


def _reference(reader: TextCursor) -> _Reference:
    """The template that starts here, including its end."""
    reader.blanks()
    path = read_path(reader)
    if not isinstance(path.steps[0], str):
        raise reader.error("a template starts with a name: a step, or input, item or index")
    reader.blanks()
    default = _default(reader) if reader.skip("|") else MISSING
    reader.blanks()
    if not reader.skip("}}"):
        raise reader.error("expected | default(…) or }} at the end of the template; write \\{{ for a literal {{")
    return _Reference(path, default)


def _default(reader: TextCursor) -> Any:
    reader.blanks()
    start = reader.at
    if reader.take(_WORD) != "default":
        raise reader.error("expected default(…) after |", at=start)
    reader.blanks()
    if not reader.skip("("):
        raise reader.error("default takes its value in parentheses")
    reader.blanks()
    value = reader.quoted() if reader.here in {"'", '"'} else _json(reader)
    reader.blanks()
    if not reader.skip(")"):
        raise reader.error("the parenthesis of default is not closed")
    return value


def _json(reader: TextCursor) -> Any:
    try:
        value, end = _decoder.raw_decode(reader.text, reader.at)
        msgspec.json.encode(value)  # rejects lone surrogates, which only escapes can express
    except (ValueError, RecursionError):
        raise reader.error("default takes a JSON value, such as 0, null, [] or 'text' in quotes") from None
    reader.at = end
    return value


def _finite(number: str) -> float:
    if not math.isfinite(value := float(number)):
        raise ValueError(number)
    return value


_decoder: Final = json.JSONDecoder(parse_float=_finite, parse_constant=_finite)
