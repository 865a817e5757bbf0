"""What the scripts' options share: values of the command line, checked, with an error that says what was wrong."""

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
    """Integers from 1, by commas, each once and rising."""
    numbers = tuple(count(part) for part in text.split(","))
    if list(numbers) != sorted(set(numbers)):
        raise argparse.ArgumentTypeError(f"{text!r} must rise from number to number, such as 1,2,4,8")
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
    """Names by commas."""
    found = tuple(part.strip() for part in text.split(",") if part.strip())
    if not found:
        raise argparse.ArgumentTypeError("name a tool, or several by commas")
    return found


def record_path(text: str) -> Path:
    """Where a record goes: what is named, with ``.json`` behind it where it ends otherwise, so that the draft beside it
    has a name of its own."""
    path = Path(text)
    if not path.name:
        raise argparse.ArgumentTypeError(f"{text!r} names no file")
    return path if path.suffix == ".json" else path.with_name(f"{path.name}.json")


def daemon_or_checkout(text: str) -> str | Path:
    """A daemon's address as it stands, or the directory of a checkout: one that is there, or what only a path can
    be.
    """
    path = Path(text)
    return path if path.is_dir() or ("/" in text and "://" not in text) else text


def _integer(text: str, least: int) -> int:
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of {least} or more")
    return number
