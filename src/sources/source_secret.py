"""Where a source's secret is, and reading it. Its value is in no configuration, log line, error or ``repr``."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MAX_SECRET_BYTES: Final = 16 * 1024
"""A token of an OAuth server may have some kilobytes."""

_USABLE: Final = re.compile(r"[\x20-\x7e]+")


class SourceSecretError(Exception):
    """The secret cannot be had; the message says where it should be and what to do, never what is there."""


@dataclass(frozen=True, slots=True)
class SourceSecret:
    """A secret by its place: a variable of the environment, or a file. One of them is given."""

    env: str | None
    file: Path | None

    def read(self, env: Mapping[str, str] = os.environ) -> str:
        """The secret as it is now; a file may be written anew while the daemon runs.

        Raises:
            SecretError: it is not there, or cannot travel in a header.
        """
        if self.file is not None:
            place, value = f"the file {self.file.name}", self._of_file(self.file)
        else:
            place, value = f"the variable {self.env}", env.get(self.env or "", "")
            if not value:
                raise SourceSecretError(f"{place} is not set in the daemon's environment")
        value = value.strip()
        if not _USABLE.fullmatch(value):
            raise SourceSecretError(f"{place} must hold one line of printable ASCII characters")
        return value

    def _of_file(self, file: Path) -> str:
        try:
            with file.open("rb") as opened:
                return opened.read(MAX_SECRET_BYTES).decode("ascii", errors="replace")
        except OSError as error:
            raise SourceSecretError(f"the file {file.name} cannot be read ({error.strerror})") from None


def secret_refused(source: str) -> str:
    """What an API or a server means that answers 401, for whoever called it."""
    return f"It does not take the daemon's secret; the operator sets auth of [sources.{source}]."
