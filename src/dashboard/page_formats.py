"""Formats values for pages: times, durations, sizes, amounts of money, and untrusted text."""

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from markupsafe import Markup, escape

from ..protocol.error_codes import ERROR_CLASSES, ErrorCode
from ..protocol.terminal_text import one_line, terminal_safe
from .form_arguments import child_name

LONG_TEXT_CHARS: Final = 20_000
"""The maximum length of a text. The middle of a longer text is omitted."""
FORM_ROW_CHARS: Final = 40
"""The approximate number of characters of a line in a narrow window."""
_CODE_SPAN: Final = re.compile(r"`([^`\n]{1,200})`")
_LINE_BREAK: Final = re.compile(r"\n(?=[^\s*#>|\d-])")
"""Matches a line break within a sentence, but not before an item of a list."""


def duration(milliseconds: float | None) -> str:
    """``0.4 ms``, ``12 ms``, ``3.2 s``, ``4 min 5 s``, ``2 h 3 min``."""
    if milliseconds is None:
        return "–"
    if milliseconds < 10:
        return f"{milliseconds:.1f} ms"
    if milliseconds < 1_000:
        return f"{milliseconds:.0f} ms"
    seconds = milliseconds / 1_000
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, seconds = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {seconds} s"
    return f"{minutes // 60} h {minutes % 60} min"


def size(number: float) -> str:
    """``812 B``, ``3.4 KB``, ``1.2 MB``: powers of 1,024."""
    if number < 1024:
        return f"{number:.0f} B"
    for unit in ("KB", "MB", "GB"):
        number /= 1024
        if number < 1024 or unit == "GB":
            break
    return f"{number:.1f} {unit}"


def count(number: float) -> str:
    """A number with separators: ``12,345``."""
    return f"{number:,.0f}"


def money(cost: Mapping[str, float]) -> str:
    """``1.20 USD, 0.031 CNY``; small amounts have two significant digits."""
    return ", ".join(f"{_amount(amount)} {currency}" for currency, amount in sorted(cost.items())) or "–"


def _amount(amount: float) -> str:
    return f"{amount:,.2f}" if amount >= 0.1 or amount == 0 else f"{amount:.2g}"


def when(unix: float | None) -> str | Markup:
    """A time. The page's script shows it in the browser's time zone."""
    if unix is None:
        return "–"
    try:
        at = datetime.fromtimestamp(unix, UTC)
    except (OverflowError, ValueError, OSError):
        return "–"
    text = at.isoformat(timespec="microseconds")[:-6]
    return Markup(f'<time datetime="{text}Z">{text[:10]} {text[11:19]} UTC</time>')  # noqa: S704 - only a time


def since(unix: float) -> str | Markup:
    """The time since ``unix``. The page's script keeps it up to date."""
    return Markup(f'<span data-since="{round(unix, 3)}"></span>')  # noqa: S704 - only a number


def line(text: object, characters: int = 120) -> str:
    """A text on one line, without control and direction characters."""
    return one_line(str(text), characters)


def sentence(text: object, characters: int = 180) -> str:
    """The first sentence of a text, on one line, without its full stop."""
    return line(" ".join(str(text)[:2000].split()).partition(". ")[0].removesuffix("."), characters)


def prose(text: object) -> Markup:
    """A description in paragraphs. Text between backquotes becomes code; other Markdown stays unchanged."""
    paragraphs = [part for part in re.split(r"\n[ \t]*\n", block(text).strip()) if part.strip()]
    return Markup("").join(Markup("<p>{}</p>").format(code_spans(_LINE_BREAK.sub(" ", part))) for part in paragraphs)


def code_spans(text: object) -> Markup:
    """A text with code between backquotes."""
    parts = _CODE_SPAN.split(str(text))
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if place % 2 else escape(part) for place, part in enumerate(parts)
    )


def breakable(name: str) -> Markup:
    """A name that may be broken after its underscores."""
    return Markup("_<wbr>").join(name.split("_"))


def meaning(code: str) -> str:
    """The meaning of an error's code, as a sentence; the code itself if it is unknown."""
    if code not in set(ErrorCode):
        return code
    return (ERROR_CLASSES[ErrorCode(code)].__doc__ or code).splitlines()[0]


def block(text: object) -> str:
    """A text of several lines, without control and direction characters; the middle of a long text is omitted."""
    shown = str(text)
    if len(shown) > LONG_TEXT_CHARS:
        half = LONG_TEXT_CHARS // 2
        shown = f"{shown[:half]}\n… {len(shown) - 2 * half:,} characters …\n{shown[-half:]}"
    return terminal_safe(shown, keep="\n\t")


def as_json(value: Any) -> str:
    """A value as indented JSON, for reading."""
    return block(json.dumps(value, indent=2, ensure_ascii=False, default=str))


def as_form_json(value: Any) -> str:
    """A value as complete, indented JSON, which a form sends back unchanged. Unprintable characters, such as marks that
    change the direction of text, are escaped.
    """
    text = json.dumps(value, indent=2, ensure_ascii=False, default=str)
    return "".join(part if part.isprintable() or part == "\n" else json.dumps(part)[1:-1] for part in text)


def form_rows(text: str) -> int:
    """The rows of a field that shows a whole text, as far as it has at most 30: a person decides on what it says."""
    return min(30, max(3, sum(1 + len(line) // FORM_ROW_CHARS for line in text.split("\n")) + 1))


FILTERS: Final[dict[str, Callable[..., Any]]] = {
    "duration": duration,
    "size": size,
    "count": count,
    "money": money,
    "when": when,
    "since": since,
    "line": line,
    "sentence": sentence,
    "prose": prose,
    "code_spans": code_spans,
    "breakable": breakable,
    "meaning": meaning,
    "block": block,
    "as_json": as_json,
    "as_form_json": as_form_json,
    "form_rows": form_rows,
    "child_of": lambda key, name: child_name(name, key),
}
