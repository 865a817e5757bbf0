"""The form of the call search: reads it from a query string, and writes it back. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from ....protocol.error_codes import ErrorCode
from ....protocol.terminal_text import terminal_safe
from ....store import CallFilter

MAX_FIELD_CHARS: Final = 200
PERIODS: Final = (("", "any time"), ("3600", "the last hour"), ("86400", "the last day"), ("604800", "the last week"))
"""Seconds → the label in the form."""
OUTCOMES: Final = (
    ("", "any"),
    ("ok", "ok"),
    ("error", "any error"),
    *((code.value, code.value) for code in sorted(ErrorCode)),
)
_FIELDS: Final = ("text", "tool", "outcome", "session", "principal", "within")


@dataclass(frozen=True, slots=True)
class CallSearch:
    """A search from the form."""

    form: Mapping[str, str]
    """Each field of the form; empty if it is not set."""
    before: int | None
    """Where the page begins."""
    problems: tuple[str, ...]
    """The problems of invalid fields, which are ignored."""

    def filter(self, sees: str | None, now: float) -> CallFilter:
        """The filter of the search for a viewer (``Viewer.sees``)."""
        form = self.form
        return CallFilter(
            principal=sees or form["principal"] or None,
            tool=form["tool"],
            outcome=form["outcome"],
            session=form["session"],
            text=form["text"],
            since=now - float(form["within"]) if form["within"] else None,
        )

    def url(self, before: int) -> str:
        """The path of the page of results that begins there."""
        fields = {name: value for name, value in self.form.items() if value}
        return "/ui/calls?" + urlencode({**fields, "before": before})


def read_search(query: Mapping[str, str]) -> CallSearch:
    """Reads a query string's fields. Invalid fields are reported and ignored."""
    form, problems = {}, []
    for name in _FIELDS:
        value = terminal_safe(query.get(name, "")).strip()
        if len(value) > MAX_FIELD_CHARS:
            problems.append(f"{name}: at most {MAX_FIELD_CHARS} characters; this field is ignored.")
            value = ""
        form[name] = value
    for name, allowed in (("outcome", OUTCOMES), ("within", PERIODS)):
        if form[name] not in {value for value, _ in allowed}:
            problems.append(f"{name}: an unknown value; this field is ignored.")
            form[name] = ""
    text = query.get("before", "")
    before = int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None
    return CallSearch(form, before, tuple(problems))
