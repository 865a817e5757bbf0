"""Secrets that the operator stores in an environment variable or a file.

Their values are in no configuration, log line, error or ``repr``.
"""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ..protocol.home_directory import expand_home

MAX_SECRET_BYTES: Final = 16 * 1024
"""The largest secret: tokens of OAuth servers can have several kilobytes."""

HEADER_VALUE: Final = re.compile(r"[\x20-\x7e]+")
"""The values that a header can carry: one line of printable ASCII."""


class SecretUnavailableError(Exception):
    """A secret cannot be read; the message names its location and the problem, never the value."""


def anchored_secret(value: Any, base: Path) -> Any:
    """A setting ``{ file = ... }`` with its path resolved against ``base``; others are left for validation."""
    if isinstance(value, Mapping) and isinstance(file := value.get("file"), str):
        return {**value, "file": base / expand_home(file)}
    return value


@dataclass(frozen=True, slots=True)
class SecretLocation:
    """The location of a secret: an environment variable or a file. Exactly one of them is set."""

    env: str | None
    file: Path | None
    json_path: tuple[int | str, ...] = ()
    """The path to the secret in the JSON of the variable; empty if the variable itself is the secret."""

    def read(self, env: Mapping[str, str] = os.environ) -> str:
        """Returns the current value, without the line ends of a file.

        Raises:
            SecretUnavailableError: the variable is not set, or the file is missing, empty, too large or not UTF-8.
        """
        if self.file is not None:
            return self._read_file(self.file)
        value = env.get(self.env or "", "")
        if not value:
            raise SecretUnavailableError(f"the variable {self.env} is not set in the daemon's environment")
        return self._in_json(value) if self.json_path else value

    def _in_json(self, text: str) -> str:
        try:
            value = json.loads(text)
            for step in self.json_path:
                value = value[step]
        except (ValueError, RecursionError, LookupError, TypeError):
            value = None
        if not isinstance(value, str) or not value:
            place = ".".join(map(str, self.json_path))
            raise SecretUnavailableError(f"the variable {self.env} has no text at {place}")
        return value

    def read_header_value(self, env: Mapping[str, str] = os.environ) -> str:
        """Returns the current value, stripped, for an HTTP header.

        Raises:
            SecretUnavailableError: as raised by ``read``, or the value is not one line of printable ASCII.
        """
        value = self.read(env).strip()
        if not HEADER_VALUE.fullmatch(value):
            place = f"the variable {self.env}" if self.file is None else f"the file {self.file.name}"
            raise SecretUnavailableError(f"{place} must contain one line of printable ASCII characters")
        return value

    def _read_file(self, file: Path) -> str:
        try:
            with file.open("rb") as opened:
                text = opened.read(MAX_SECRET_BYTES + 1).decode().rstrip("\r\n")
        except OSError as error:
            raise SecretUnavailableError(f"the file {file.name} cannot be read ({error.strerror})") from None
        except UnicodeDecodeError:
            raise SecretUnavailableError(f"the file {file.name} is not UTF-8 text") from None
        if not text or len(text) > MAX_SECRET_BYTES:
            raise SecretUnavailableError(f"the file {file.name} is empty or larger than {MAX_SECRET_BYTES} bytes")
        return text
