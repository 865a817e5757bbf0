"""Fetches the card of a remote agent, and decides whether it may be used."""

import asyncio
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from ...protocol.a2a.remote_card import RemoteCard, RemoteInterface, UnusableCardError, read_card
from ...protocol.a2a.remote_request import RemoteHttpRequest
from ...protocol.error_codes import CallError
from ..source_settings import A2ASettings, CardKeys
from .card_verifier import keys_in, verified_key
from .remote_http import RemoteAnswer, RemoteHttp

MAX_CARD_BYTES: Final = 1024**2
MAX_KEYS_BYTES: Final = 64 * 1024
WELL_KNOWN: Final = ("/.well-known/agent-card.json", "/.well-known/agent.json")
"""The paths of cards of 1.0 and 0.3, below an agent's URL."""
_ABSENT: Final = frozenset({404, 405, 410})
_PORTS: Final = {"http": 80, "https": 443}


class TrustedCard(NamedTuple):
    """A card that may be used."""

    card: RemoteCard
    interface: RemoteInterface
    """The interface to which calls go."""
    key: str
    """The key that signed the card; empty if signatures are not verified."""


async def fetch_card(http: RemoteHttp, settings: A2ASettings) -> TrustedCard:
    """Fetches the card, verifies it, and chooses the interface. The caller limits the time.

    Raises:
        UnusableCardError: there is no card, or it may not be used.
    """
    for url in card_urls(settings.url):
        answer = await _get(http, url, MAX_CARD_BYTES, with_secret=True)
        if answer.status not in _ABSENT:
            break
    else:
        tried = " and ".join(urlsplit(url).path for url in card_urls(settings.url))
        raise UnusableCardError(f"there is no agent card: {tried} answered HTTP {answer.status}; check url")
    value = await _json(http, answer, "the agent card")
    key = ""
    if settings.verify is not None:
        keys = await _keys(http, settings.verify)
        key = await asyncio.to_thread(verified_key, value if isinstance(value, dict) else {}, keys)
    card = read_card(value)
    return TrustedCard(card, allowed_interface(card, url, settings.interface_hosts), key)


def card_urls(url: str) -> tuple[str, ...]:
    """The possible URLs of the card: the URL itself if it is a JSON file, else paths below it."""
    path = urlsplit(url).path
    if path.endswith(".json"):
        return (url,)
    base = url.split("#", maxsplit=1)[0].split("?", maxsplit=1)[0].rstrip("/")
    return tuple(base + place for place in WELL_KNOWN)


def allowed_interface(card: RemoteCard, card_url: str, hosts: tuple[str, ...]) -> RemoteInterface:
    """The best interface to which calls may go: at the card's origin, or at a host that the operator named.

    Raises:
        UnusableCardError: there is no such interface.
    """
    home = _origin(card_url)
    named = {host.lower() for host in hosts}
    refused: dict[str, None] = {}
    for interface in card.interfaces:
        origin = _origin(interface.url)
        if origin is None or home is None:
            refused["an address that is not an http or https URL"] = None
        elif origin == home or (origin[1] in named and (origin[0] == "https" or home[0] == "http")):
            return interface
        elif origin[1] in named:
            refused[f"http://{origin[1]}, although the card came over https"] = None
        else:
            refused[f"{origin[0]}://{origin[1]}:{origin[2]}"] = None
    places = ", ".join(list(refused)[:5])
    raise UnusableCardError(
        f"its card sends calls to {places}, which is not the card's origin; interface_hosts can allow the host"
    )


def _origin(url: str) -> tuple[str, str, int] | None:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in _PORTS or not parts.hostname or parts.username is not None:
        return None
    return parts.scheme, parts.hostname.lower(), port or _PORTS[parts.scheme]


async def _keys(http: RemoteHttp, places: CardKeys) -> list[Any]:
    if places.keys is not None:
        return keys_in({"keys": list(places.keys)})
    if places.file is not None:
        return keys_in(await http.decoded(await asyncio.to_thread(_read_file, places.file)))
    answer = await _get(http, str(places.url), MAX_KEYS_BYTES, with_secret=False)
    return keys_in(await _json(http, answer, "the JWK set of verify"))


def _read_file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MAX_KEYS_BYTES)
    except OSError as error:
        raise UnusableCardError(f"the keys of verify cannot be read: {path} ({error.strerror})") from None


async def _get(http: RemoteHttp, url: str, max_bytes: int, *, with_secret: bool) -> RemoteAnswer:
    request = RemoteHttpRequest("GET", url, {"Accept": "application/json"}, None)
    try:
        return await http.ask(request, max_bytes=max_bytes, with_secret=with_secret)
    except CallError as error:
        raise UnusableCardError(error.message.rstrip(".")) from error


async def _json(http: RemoteHttp, answer: RemoteAnswer, what: str) -> Any:
    if answer.status != 200:
        hint = "; set auth" if answer.status == 401 else ""
        raise UnusableCardError(f"{what} cannot be read: HTTP {answer.status}{hint}")
    try:
        return await http.decoded(answer.body)
    except CallError as error:
        raise UnusableCardError(f"{what} cannot be used: {error.message.rstrip('.')}") from None
