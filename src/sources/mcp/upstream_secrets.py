"""What a server is given of secrets, and nothing that it says is to repeat."""

from typing import Any

from ...tools import SecretLocation, SecretUnavailableError, ValueMask
from ..source_settings import McpSettings
from .upstream_failures import UpstreamUnavailableError


class UpstreamSecrets:
    """Those of one source, as they were when its server was connected to."""

    def __init__(self, settings: McpSettings) -> None:
        self._settings = settings
        self._mask: ValueMask | None = None

    def read(self) -> dict[str, str]:
        """Read them now; returns the program's own variables.

        Raises:
            AwayError: one cannot be had.
        """
        secrets: list[str] = []
        variables: dict[str, str] = {}
        try:
            if self._settings.auth is not None:
                secrets.append(self._settings.auth.secret.read_header_value())
            for name, value in self._settings.env.items():
                variables[name] = value.read_header_value() if isinstance(value, SecretLocation) else value
                if isinstance(value, SecretLocation):
                    secrets.append(variables[name])
        except SecretUnavailableError as error:
            raise UpstreamUnavailableError(f"of its secrets, {error}") from None
        self._mask = ValueMask(secrets) if secrets else None
        return variables

    def out_of_text(self, text: str) -> str:
        """The text without them."""
        return text if self._mask is None else self._mask.text(text)

    def out_of(self, value: Any) -> Any:
        """A value without them, however deep they are in it."""
        return value if self._mask is None else self._mask.value(value)
