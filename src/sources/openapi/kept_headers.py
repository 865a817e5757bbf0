"""Chooses the response headers that a caller needs: for paging, locations and rate limits. Pure."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

MAX_HEADERS: Final = 32
MAX_CHARS: Final = 8_192
"""The maximum length of all headers. A value that does not fit is omitted, because part of a link would be wrong."""

_KEPT: Final = re.compile(
    r"link|location|content-location|operation-location|retry-after|content-range|accept-ranges"
    r"|x-(total|page|per-page|next-page|prev-page|total-pages|total-count|page-count|next-cursor)"
    r"|x-pagination[\w-]*|(x-)?rate-?limit[\w-]*"
)


def kept_headers(headers: Mapping[str, str], redact: Iterable[str]) -> dict[str, str]:
    """Returns the headers by lower-case name, without the values to ``redact``."""
    kept: dict[str, str] = {}
    left = MAX_CHARS
    for name, value in headers.items():
        lower = name.lower()
        if _KEPT.fullmatch(lower) and len(lower) + len(value) <= left and len(kept) < MAX_HEADERS:
            left -= len(lower) + len(value)
            kept[lower] = "".join(char if char.isprintable() else " " for char in value)
    for secret in redact:
        kept = {name: value.replace(secret, "…") for name, value in kept.items()}
    return kept
