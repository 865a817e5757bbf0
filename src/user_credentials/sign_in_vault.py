"""The OAuth sign-ins to MCP servers, stored in the table of users' credentials and encrypted with the same key."""

from .credential_vault import SIGN_IN_PREFIX, LocalVault

_FIELD = "sign_in"


class SignInVault:
    """Implements ``SignInStore`` of ``sources/oauth``. Always in the database: tokens change every hour."""

    def __init__(self, vault: LocalVault) -> None:
        self._vault = vault

    def __repr__(self) -> str:
        return "<SignInVault>"

    async def read(self, principal: str, source: str) -> str | None:
        """The sign-in of a principal at a source.

        Raises:
            ServiceUnavailableError: the vault cannot be used.
        """
        fields = await self._vault.fields(principal, SIGN_IN_PREFIX + source)
        return None if fields is None else fields.get(_FIELD)

    async def write(self, principal: str, source: str, sign_in: str) -> None:
        """Stores a sign-in, replacing the previous one.

        Raises:
            ServiceUnavailableError: as above.
            OverCapacityError: the vault is full.
        """
        await self._vault.put(principal, SIGN_IN_PREFIX + source, {_FIELD: sign_in})

    async def remove(self, principal: str, source: str) -> bool:
        """Deletes a sign-in; False if there was none.

        Raises:
            ServiceUnavailableError: as above.
        """
        return await self._vault.remove(principal, SIGN_IN_PREFIX + source)
