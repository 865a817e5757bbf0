"""Parses the text of a filter::

    filter    = all { OR all }
    all       = not { AND not }
    not       = NOT not | "(" filter ")" | condition
    condition = path operator value | path IN "(" value { "," value } ")" | path IS_NULL | path IS_NOT_NULL

A word is an operator only in the position of one, so an unquoted value can contain any word except AND and OR.
"""

import re
from typing import Final

from ..protocol.name_suggestions import close_names, did_you_mean
from .filter_conditions import ON_TEXT, ORDERING, WITHOUT_VALUE, And, Filter, FilterCondition, FilterOperator, Not, Or
from .filter_operands import Literal, PatternError, compile_pattern, typed
from .text_cursor import TextCursor
from .value_paths import ValuePath, read_path

MAX_FILTER_CHARS: Final = 65_536
MAX_DEPTH: Final = 50
"""The deepest nesting of parentheses and NOTs."""
MAX_PATTERNS: Final = 10
"""The largest number of patterns in one filter: each takes milliseconds to compile."""

_EXAMPLE: Final = "status = 'open' AND (age >= 18 OR name CONTAINS smith)"
_SIGNS: Final = re.compile(r"[=!<>~]+")
_WORD: Final = re.compile(r"""[^\s'"(),=!<>]+""")
_KEYWORD: Final = {word: re.compile(rf"{word}(?![^\s('\"])", re.IGNORECASE) for word in ("AND", "OR", "NOT")}
_JOIN: Final = r"""(?<![^\s(,=!<>])(?:AND|OR)(?![^\s'"(),=!<>])"""
_BARE: Final = re.compile(rf"""(?:(?!{_JOIN})[^'"(),=!<>])*""", re.IGNORECASE)
_DOUBLED: Final = re.compile(r"&&|\|\|")
_BY_TEXT: Final = {operator.value: operator for operator in FilterOperator}
_OPERATOR_HINTS: Final = {
    "==": "use =",
    "===": "use =",
    "<>": "use != for 'not equal'",
    "=>": "use >= for 'at least'",
    "=<": "use <= for 'at most'",
    "=~": "use MATCHES for patterns",
    "~": "use MATCHES for patterns",
    "LIKE": "use CONTAINS, STARTS_WITH or MATCHES to search in text",
    "ILIKE": "use CONTAINS, STARTS_WITH or MATCHES to search in text",
    "REGEX": "use MATCHES for patterns",
    "ENDS_WITH": "use MATCHES 'end$'",
    "BETWEEN": "write a >= 1 AND a <= 9",
    "IS": "write IS_NULL or IS_NOT_NULL, as one word",
    "NOT": "write NOT before the condition: NOT a IN (1, 2)",
    "EQUALS": "use =",
    "EQ": "use =",
}
"""Operators of other languages, and their equivalents here."""


class _FilterReader(TextCursor):
    """Counts the patterns in the filter."""

    __slots__ = ("patterns",)

    def __init__(self, text: str, example: str) -> None:
        super().__init__(text, example)
        self.patterns = 0


def parse_filter(text: str) -> Filter:
    """Parse the text of a filter.

    Raises:
        LanguageError: it is invalid; the error has the position and an example.
    """
    reader = _FilterReader(text, _EXAMPLE)
    if len(text) > MAX_FILTER_CHARS:
        raise reader.error(f"a filter has at most {MAX_FILTER_CHARS} characters", at=MAX_FILTER_CHARS)
    reader.blanks()
    if not reader.here:
        raise reader.error("the filter is empty")
    found = _any_of(reader, 0)
    if reader.here == ")":
        raise reader.error("there is no open parenthesis")
    return found


def _any_of(reader: _FilterReader, depth: int) -> Filter:
    parts = [_all_of(reader, depth)]
    while _keyword(reader, "OR"):
        parts.append(_all_of(reader, depth))
    return parts[0] if len(parts) == 1 else Or(tuple(parts))


def _all_of(reader: _FilterReader, depth: int) -> Filter:
    parts = [_one(reader, depth)]
    while _keyword(reader, "AND"):
        parts.append(_one(reader, depth))
    return parts[0] if len(parts) == 1 else And(tuple(parts))


def _one(reader: _FilterReader, depth: int) -> Filter:
    reader.blanks()
    if depth > MAX_DEPTH:
        raise reader.error(f"parentheses and NOTs are nested at most {MAX_DEPTH} deep")
    start = reader.at
    if _keyword(reader, "NOT"):
        return Not(_one(reader, depth + 1))
    if not reader.skip("("):
        return _condition(reader)
    inner = _any_of(reader, depth + 1)
    if not reader.skip(")"):
        raise reader.error(f"the parenthesis at position {start + 1} is not closed")
    _end_of_condition(reader)
    return inner


def _keyword(reader: _FilterReader, word: str) -> bool:
    return bool(reader.take(_KEYWORD[word]))


def _condition(reader: _FilterReader) -> FilterCondition:
    path = _field(reader)
    reader.blanks()
    operator = _operator(reader, path)
    reader.blanks()
    value: Literal | tuple[Literal, ...] = None
    if operator is FilterOperator.IN:
        value = _list(reader)
    elif operator in ON_TEXT:
        value = _text(reader, operator)
    elif operator not in WITHOUT_VALUE:
        value = _value(reader, operator)
    _end_of_condition(reader)
    return FilterCondition(path, operator, value)


def _field(reader: _FilterReader) -> ValuePath:
    for word, keyword in _KEYWORD.items():
        if keyword.match(reader.text, reader.at):
            raise reader.error(f"a condition is missing before {word}; quote it if it is a name: ['{word.lower()}']")
    if not reader.here:
        raise reader.error("a condition is missing")
    if reader.here in {"'", '"'}:
        raise reader.error("a quoted field name needs brackets: ['a name'] = 1")
    return read_path(reader)


def _operator(reader: _FilterReader, path: ValuePath) -> FilterOperator:
    start = reader.at
    word = reader.take(_SIGNS) or reader.take(_WORD)
    if operator := _BY_TEXT.get(word.upper()):
        return operator
    if not word:
        raise reader.error(f"an operator is missing after `{path}`: one of {', '.join(_BY_TEXT)}", at=start)
    instead = _OPERATOR_HINTS.get(word.upper()) or did_you_mean(close_names(word, _BY_TEXT, n=1))
    hint = instead or f"the operators are {', '.join(_BY_TEXT)}; quote a name with blanks: ['a name']"
    raise reader.error(f"{word[:20]!r} is not an operator; {hint}", at=start)


def _value(reader: _FilterReader, operator: FilterOperator) -> Literal:
    start = reader.at
    value = _literal(reader)
    if operator in ORDERING and (value is None or isinstance(value, bool)):
        raise reader.error(f"null, true and false cannot be compared with {operator}; use = or !=", at=start)
    return value


def _literal(reader: _FilterReader) -> Literal:
    if reader.here in {"'", '"'}:
        return reader.quoted()
    start = reader.at
    return typed(_bare(reader), reader, start)


def _text(reader: _FilterReader, operator: FilterOperator) -> str:
    start = reader.at
    text = reader.quoted() if reader.here in {"'", '"'} else _bare(reader)
    if operator is FilterOperator.MATCHES:
        reader.patterns += 1
        if reader.patterns > MAX_PATTERNS:
            raise reader.error(f"a filter has at most {MAX_PATTERNS} patterns; combine them as 'a|b'", at=start)
        try:
            compile_pattern(text)
        except PatternError as error:
            raise reader.error(
                f"the pattern is invalid: {error}", at=start, example="name MATCHES '^A[0-9]+$'"
            ) from None
    return text


def _bare(reader: _FilterReader) -> str:
    """Unquoted text: up to the next AND or OR, parenthesis, comma, quote or operator, or the end."""
    start = reader.at
    run = reader.take(_BARE)
    if doubled := _DOUBLED.search(run):
        raise reader.error("join conditions with AND and OR; quote it if you mean the text", at=start + doubled.start())
    if not (bare := run.strip()):
        raise reader.error("a value is missing", at=start)
    return bare


def _list(reader: _FilterReader) -> tuple[Literal, ...]:
    example = "status IN (open, 'in progress', 3)"
    if not reader.skip("("):
        raise reader.error("IN takes its values in parentheses", example=example)
    values: list[Literal] = []
    while True:
        reader.blanks()
        values.append(_literal(reader))
        reader.blanks()
        if reader.skip(")"):
            return tuple(values)
        if not reader.skip(","):
            raise reader.error("separate the values of IN with commas, and close the list with )", example=example)


def _end_of_condition(reader: _FilterReader) -> None:
    """A condition is followed by AND, OR, a closing parenthesis, or the end."""
    reader.blanks()
    ends = not reader.here or reader.here == ")"
    if not ends and not any(_KEYWORD[word].match(reader.text, reader.at) for word in ("AND", "OR")):
        hint = "quote text that contains quotes, parentheses, commas or operators"
        raise reader.error(f"expected AND, OR or the end; {hint}")
