"""The lines of a diff, as pages show them. Pure."""

from typing import Final

_KINDS: Final = {"-": "removed", "+": "added", "@": "place"}


def diff_lines(diff: str) -> list[tuple[str, str]]:
    """Returns (kind, text) of each line of a unified diff: ``removed``, ``added``, ``same``, or ``place`` of a gap."""
    lines = diff.split("\n") if diff else []
    return [(_KINDS.get(line[:1], "same"), "" if line.startswith("@") else line[1:]) for line in lines]
