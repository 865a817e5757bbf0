"""The interface to the vault of users' credentials, for tools and dispatch."""

from typing import Protocol

from ..protocol.user_credential import CredentialField


class CredentialLookup(Protocol):
    """Finds credentials of users."""

    @property
    def page(self) -> str | None:
        """The URL of the page on which users enter credentials; None: the daemon's own means."""
        ...

    async def value(self, principal: str, wanted: CredentialField) -> str | None:
        """The current value of a principal's credential; None if it is not stored.

        Raises:
            ServiceUnavailableError: the vault cannot be read.
        """
        ...


class NoCredentials:
    """A vault without credentials. Implements ``CredentialLookup``."""

    page = None

    async def value(self, principal: str, wanted: CredentialField) -> str | None:  # noqa: ARG002 - of the protocol
        return None
