"""Checks the names of providers in arguments. Pure."""

from collections.abc import Iterable

from ..providers import unknown_provider


def check_provider(name: str | None, known: Iterable[str]) -> None:
    """Checks a provider that a caller named; None means any.

    Raises:
        InvalidArgumentsError: it is not ``known``; the message lists or suggests the names.
    """
    known = list(known)
    if name is not None and name not in known:
        raise unknown_provider(name, known)
