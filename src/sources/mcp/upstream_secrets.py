"""Removes the secrets that a server receives from its output."""

from collections.abc import Callable
from typing import Any

from ...tools import SecretLocation, SecretUnavailableError, ValueMask
from ..source_auth import operator_auth
from ..source_settings import McpSettings
from .upstream_failures import UpstreamUnavailableError


class UpstreamSecrets:
    """The secrets of one source at the time of the last connection to its server."""

    def __init__(self, settings: McpSettings, tokens: Callable[[], frozenset[str]] = frozenset) -> None:
        """``tokens`` returns the tokens that the daemon has sent since then."""
        self._tokens = tokens
        self._masked_tokens: frozenset[str] = frozenset()
        self._settings = settings
        self._mask: ValueMask | None = None
        self._known: list[str] = []

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
        self._known = secrets
        self._masked_tokens = self._tokens()
        self._renew_mask()
        return variables

    def _renew_mask(self) -> None:
        secrets = [*self._known, *self._masked_tokens]
        self._mask = ValueMask(secrets) if secrets else None

    def _current(self) -> ValueMask | None:
        tokens = self._tokens()
        if tokens is not self._masked_tokens:
            self._masked_tokens = tokens
            self._renew_mask()
        return self._mask

    def redact_text(self, text: str) -> str:
        """Returns the text without the secrets."""
        mask = self._current()
        return text if mask is None else mask.text(text)

    def redact(self, value: Any) -> Any:
        """Returns the JSON value without the secrets, at any depth."""
        mask = self._current()
        return value if mask is None else mask.value(value)
