"""Templates: values with places in them that are filled from other values.

``{{step.field}}``, ``{{ items[0].name }}``, ``{{input.x | default('none')}}``. A text that is one template and nothing
else becomes the value itself, whatever its type; in any other text a value is written, objects and lists as JSON. What
was filled in is never looked at again. ``\\{{`` is ``{{``; two backslashes before ``{{`` are one, and then the
template counts.
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
from .value_paths import MISSING, NOTHING_SAID, Said, ValuePath, explain_missing, find, read_path

MAX_DEPTH: Final = 200
"""Of lists and objects within one another."""
MAX_FILLED_BYTES: Final = 20 * 1024**2
"""As much as a frame brings: a value that each step uses ten times would else be a hundred million after eight."""

Context = dict[str, Any]
"""What templates refer to, by the first name of their paths."""

_EXAMPLE: Final = "{{fetch.items[0].id}} or {{input.name | default('none')}}"
_WORD: Final = re.compile(r"\w*")
_Fill = Callable[[Context, Said], Any]


class Template:
    """A value with its templates found; ``paths`` are those that it refers to, in order, each once."""

    __slots__ = ("_fill", "_uses", "paths")

    def __init__(self, uses: dict[ValuePath, int], fill: _Fill) -> None:
        self.paths = tuple(uses)
        self._uses = uses
        self._fill = fill

    @property
    def names(self) -> frozenset[str]:
        """The first name of every path: what has to be in the context, unless a default stands in."""
        return frozenset(str(path.steps[0]) for path in self.paths)

    def resolve(self, context: Context, said: Said = NOTHING_SAID) -> Any:
        """The value with everything filled in; parts of the context are in it as they are, not copied.

        A path that goes on behind a text of ``said`` goes on into what that says; the text alone stays as it is.

        Raises:
            MissingValueError: something is not there and has no default.
            ShapingError: as ``check_size``, or a value is nested too deeply.
        """
        self.check_size(context, said)
        try:
            return self._fill(context, said)
        except RecursionError:
            raise ShapingError("a value that a template refers to is nested too deeply to be written as text") from None

    def check_size(self, context: Context, said: Said = NOTHING_SAID) -> None:
        """Look how much would be filled in, without doing it; what is not there counts nothing.

        Raises:
            ShapingError: it is more than ``MAX_FILLED_BYTES``.
        """
        room = MAX_FILLED_BYTES
        for path, times in self._uses.items():
            room -= times * weight(find(path, context, said), room // times)
            if room < 0:
                what = f"what the templates fill in is more than {MAX_FILLED_BYTES:,} bytes together, with {path}"
                raise ShapingError(f"{what}; refer to less of it, or less often")


class _Reference(msgspec.Struct, frozen=True):
    path: ValuePath
    default: Any = MISSING

    def __call__(self, context: Context, said: Said) -> Any:
        found = find(self.path, context, said)
        if found is not MISSING:
            return found
        if self.default is MISSING:
            hint = f"{{{{{self.path} | default(null)}}}} would take null instead"
            raise MissingValueError(f"{explain_missing(self.path, context, said)}; {hint}", str(self.path))
        return self.default


class _Constant(msgspec.Struct, frozen=True):
    """No template is in it."""

    value: Any

    def __call__(self, context: Context, said: Said) -> Any:  # noqa: ARG002  # of the same form as what does look
        return self.value


def compile_template(value: Any) -> Template:
    """Find the templates in all texts of a JSON value. Names of fields are no place for them.

    Raises:
        LanguageError: a template cannot be parsed, or stands in a field's name; the message says in which text.
    """
    uses: dict[ValuePath, int] = {}
    fill = _compiled(value, (), uses)
    return Template(uses, fill)


def _compiled(value: Any, place: tuple[str | int, ...], uses: dict[ValuePath, int]) -> _Fill:
    """What fills in the value that stands at ``place``; how often it refers to which path is added to ``uses``."""
    if not isinstance(value, str | list | dict):
        return _Constant(value)
    if len(place) > MAX_DEPTH:
        raise LanguageError(f"a value with templates is nested at most {MAX_DEPTH} deep", "", 1, _EXAMPLE)
    if isinstance(value, str):
        return _text(_parts(value, place), uses)
    if isinstance(value, list):
        items = [_compiled(item, (*place, index), uses) for index, item in enumerate(value)]
        return _folded(items, lambda context, said: [fill(context, said) for fill in items])
    fields = {_field_name(name, place): _compiled(item, (*place, name), uses) for name, item in value.items()}
    return _folded(fields.values(), lambda context, said: {name: fill(context, said) for name, fill in fields.items()})


def _folded(fills: Iterable[_Fill], fill: _Fill) -> _Fill:
    """A constant where all parts are."""
    return _Constant(fill({}, NOTHING_SAID)) if all(isinstance(part, _Constant) for part in fills) else fill


def _field_name(name: str, place: tuple[str | int, ...]) -> str:
    parts = _parts(name, place)
    if any(isinstance(part, _Reference) for part in parts):
        what = "a field's name holds no template; a literal {{ is written \\{{"
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
    return lambda context, said: "".join(
        part if isinstance(part, str) else _as_text(part(context, said)) for part in parts
    )


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _parts(text: str, place: tuple[str | int, ...]) -> list[str | _Reference]:
    """The text between templates, and the templates."""
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
    """The template that is open here, up to and with its end."""
    reader.blanks()
    path = read_path(reader)
    if not isinstance(path.steps[0], str):
        raise reader.error("a template begins with a name: of a step, or input, item, index")
    reader.blanks()
    default = _default(reader) if reader.skip("|") else MISSING
    reader.blanks()
    if not reader.skip("}}"):
        raise reader.error("a template goes on with | default(…) or ends with }}; a literal {{ is written \\{{")
    return _Reference(path, default)


def _default(reader: TextCursor) -> Any:
    reader.blanks()
    start = reader.at
    if reader.take(_WORD) != "default":
        raise reader.error("behind | stands default(…), and nothing else", at=start)
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
        value, reader.at = _decoder.raw_decode(reader.text, reader.at)
    except (ValueError, RecursionError):
        raise reader.error("default takes a JSON value, such as 0, null, [] or 'text' in quotes") from None
    return value


def _finite(number: str) -> float:
    if not math.isfinite(value := float(number)):
        raise ValueError(number)
    return value


_decoder: Final = json.JSONDecoder(parse_float=_finite, parse_constant=_finite)
