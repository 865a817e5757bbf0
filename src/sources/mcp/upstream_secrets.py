"""The secrets that a server receives, and their removal from its output."""

from typing import Any

from ...tools import SecretLocation, SecretUnavailableError, ValueMask
from ..source_auth import operator_auth
from ..source_settings import McpSettings
from .upstream_failures import UpstreamUnavailableError


class UpstreamSecrets:
    """The secrets of one source, as they were when its server was last connected to."""

    def __init__(self, settings: McpSettings) -> None:
        self._settings = settings
        self._mask: ValueMask | None = None

    def load(self) -> dict[str, str]:
        """Reads the secrets; returns the program's variables.

        Raises:
            UpstreamUnavailableError: a secret cannot be read.
        """
        secrets: list[str] = []
        variables: dict[str, str] = {}
        try:
            secrets += operator_auth(self._settings.shared_auth).redacted_values
            for name, value in self._settings.env.items():
                variables[name] = value.read_header_value() if isinstance(value, SecretLocation) else value
                if isinstance(value, SecretLocation):
                    secrets.append(variables[name])
        except SecretUnavailableError as error:
            raise UpstreamUnavailableError(f"a secret is missing: {error}") from None
        self._mask = ValueMask(secrets) if secrets else None
        return variables

    def redact_text(self, text: str) -> str:
        """Returns the text without the secrets."""
        return text if self._mask is None else self._mask.text(text)

    def redact(self, value: Any) -> Any:
        """Returns the JSON value without the secrets, at any depth."""
        return value if self._mask is None else self._mask.value(value)
