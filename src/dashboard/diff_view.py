"""Splits a diff into lines for pages. Pure."""

from typing import Final

_KINDS: Final = {"-": "removed", "+": "added", "@": "place"}


def diff_lines(diff: str, *, new: bool = False) -> list[tuple[str, str]]:
    """Returns the kind and the text of each line of a unified diff: ``removed``, ``added``, ``same``, or ``place`` of a
    gap.

    With ``new``, there was no earlier version: the lines of the empty one with which it was compared are left out.
    """
    lines = diff.split("\n") if diff else []
    found = [(_KINDS.get(line[:1], "same"), "" if line.startswith("@") else line[1:]) for line in lines]
    return [line for line in found if line[0] != "removed"] if new else found
