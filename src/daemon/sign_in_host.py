"""Sign-ins to sources with OAuth: stores them, and creates the links to their pages."""

from collections.abc import Callable, Container, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from ..protocol.daemon_address import connectable
from ..serving import HttpServer
from ..sources import (
    DAEMON_SIGN_IN,
    PinStorage,
    SignInDesk,
    Source,
    SourceEvents,
    SourceManager,
    SourceSettings,
    open_source,
)
from ..store import Store
from ..user_credentials import CredentialVault, LocalVault, SignInVault
from .config.settings import Settings
from .credential_host import local_vault, open_vault


class SignInHost:
    """Implements ``SignInPort``."""

    def __init__(
        self,
        settings: Callable[[], Settings],
        store: Store,
        state_dir: Path,
        vault: CredentialVault,
        *,
        http_port: Callable[[], int],
        sources: Callable[[], SourceManager],
    ) -> None:
        self.vault = vault if isinstance(vault, LocalVault) else local_vault(store, state_dir, None)
        self.desk = SignInDesk(SignInVault(self.vault), lambda: _origin(settings(), http_port()))
        self._sources = sources

    def opener(
        self, pins: PinStorage, taken: Callable[[str], Container[str]], events: SourceEvents
    ) -> Callable[[str, SourceSettings], Source]:
        """Opens sources with these sign-ins; ``taken`` returns the tool names that other sources use."""
        return partial(open_source, pins=pins, taken=taken, events=events, desk=self.desk)

    def describe(self, key: str) -> tuple[str, str, str] | None:
        ticket = self.desk.ticket(key)
        if ticket is None:
            return None
        return ticket.sign_ins.source, urlsplit(ticket.sign_ins.url).hostname or "", ticket.principal

    async def start(self, key: str, browser: str) -> str:
        return await self.desk.use_ticket(key, browser)

    async def finish(self, answer: dict[str, str], browser: str | None) -> str:
        sign_ins, principal = await self.desk.finish(answer, browser)
        if principal == DAEMON_SIGN_IN:
            self._sources().refresh()
        return sign_ins.source

    def signs_in(self, source: str) -> bool:
        """Whether the daemon signs in at this source by OAuth, with a person."""
        return self.desk.needs_person(source)

    def link(self, source: str) -> str:
        """The address of the page that begins the daemon's sign-in at a source, once.

        Raises:
            NotFoundError: no such source has OAuth.
        """
        return self.desk.daemon_link(source)

    async def begin_daemon(self, source: str, redirect_uri: str) -> dict[str, Any]:
        """``url``: the link for the operator's browser."""
        return {"url": await self.desk.begin_daemon(source, redirect_uri)}

    async def finish_daemon(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        """``source``: the source to which the daemon is now signed in."""
        texts = {name: value for name, value in answer.items() if isinstance(value, str)}
        return {"source": await self.finish(texts, None)}

    async def sign_out(self, source: str, principal: str | None) -> dict[str, Any]:
        """``removed``: whether there was a sign-in of the principal, or of the daemon."""
        removed = await self.desk.sign_out(source, principal or DAEMON_SIGN_IN)
        self._sources().refresh()
        return {"removed": removed}


class SignInDaemon(Protocol):
    """The parts of the daemon that sign-ins use."""

    settings: Settings
    sources: SourceManager
    http: HttpServer


def open_credentials(
    store: Store, state_dir: Path, daemon: Callable[[], SignInDaemon]
) -> tuple[CredentialVault, SignInHost]:
    """The vault with the credentials of users, and the sign-ins. A vault in the database also stores the sign-ins."""
    vault = open_vault(daemon().settings.user_credentials, store, state_dir)
    return vault, SignInHost(
        lambda: daemon().settings,
        store,
        state_dir,
        vault,
        http_port=lambda: daemon().http.port,
        sources=lambda: daemon().sources,
    )


def _origin(settings: Settings, port: int) -> str:
    """The origin at which browsers reach the HTTP port."""
    if settings.a2a_url is None:
        host = connectable(settings.host)
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    parts = urlsplit(settings.a2a_url)
    return f"{parts.scheme}://{parts.netloc}"
