"""Parsers of command-line values, shared by the scripts, with errors that say what is wrong."""

import argparse
import math
from pathlib import Path


def count(text: str) -> int:
    """An integer from 1."""
    return _integer(text, 1)


def count_or_none(text: str) -> int:
    """An integer from 0."""
    return _integer(text, 0)


def counts(text: str) -> tuple[int, ...]:
    """Comma-separated integers from 1, ascending and distinct."""
    numbers = tuple(count(part) for part in text.split(","))
    if list(numbers) != sorted(set(numbers)):
        raise argparse.ArgumentTypeError(f"{text!r} must be ascending numbers, such as 1,2,4,8")
    return numbers


def positive(text: str) -> float:
    """A number above 0."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return number


def names(text: str) -> tuple[str, ...]:
    """Comma-separated names."""
    found = tuple(part.strip() for part in text.split(",") if part.strip())
    if not found:
        raise argparse.ArgumentTypeError("name one tool or several, comma-separated")
    return found


def record_path(text: str) -> Path:
    """The path of a record: ``.json`` is appended if missing, so that the draft next to it has a different name."""
    path = Path(text)
    if not path.name:
        raise argparse.ArgumentTypeError(f"{text!r} names no file")
    return path if path.suffix == ".json" else path.with_name(f"{path.name}.json")


def daemon_or_checkout(text: str) -> str | Path:
    """A daemon's address, or the directory of a checkout: an existing directory, or text that can only be a path."""
    path = Path(text)
    return path if path.is_dir() or ("/" in text and "://" not in text) else text


def _integer(text: str, least: int) -> int:
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least:
        raise argparse.ArgumentTypeError(f"{text!r} is not an integer of at least {least}")
    return number
