"""Parses JSON of moderate size from outside, with one error class for all problems. Pure."""

import json
from typing import Any


class InvalidJsonError(ValueError):
    """The text is not JSON, or nested too deeply; the message says why."""


def parse_json(text: str | bytes) -> Any:
    """Parses JSON with Python's parser, which also accepts NaN and lone surrogates.

    Raises:
        InvalidJsonError: the text is not JSON, or nested deeper than Python's recursion limit.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise InvalidJsonError("it is nested too deeply") from None
    except ValueError as error:  # also UnicodeDecodeError, and a number of too many digits
        raise InvalidJsonError(str(error)) from None
