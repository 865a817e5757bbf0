"""What tools and dispatch know of the credentials of users: the vault that has them."""

from typing import Protocol

from ..protocol.user_credential import CredentialField


class CredentialLookup(Protocol):
    """Finds credentials of users."""

    @property
    def page(self) -> str | None:
        """The URL of the page on which users give credentials; None: the daemon's own ways."""
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
