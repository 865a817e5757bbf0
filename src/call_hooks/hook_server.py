"""A hook at an HTTP address: each question is a POST, and connections are reused."""

import asyncio
from typing import Final
from urllib.parse import urlsplit

import httpcore
import httpx

from ..sources import AddressPolicy, CheckedNetwork, ForbiddenAddressError, read_body
from ..tools import SecretUnavailableError
from ..version import __version__
from .hook_messages import MAX_QUESTION_BYTES, HookAnswerError
from .hook_settings import HookSettings

_OK: Final = 200
_NO_CONTENT: Final = 204


class HookServer:
    """Implements ``HookBackend``."""

    def __init__(self, name: str, settings: HookSettings) -> None:
        self._url = settings.url or ""
        self._key = settings.key
        policy = AddressPolicy(settings.allow_private, setting=f"[hooks.{name}] allow_private")
        self._network = CheckedNetwork(policy)

    def __repr__(self) -> str:
        return f"<HookServer {urlsplit(self._url).netloc}>"

    async def ask(self, question: bytes, seconds: float) -> bytes:
        """Returns the answer.

        Raises:
            HookAnswerError: there is no answer.
        """
        host = urlsplit(self._url).hostname
        try:
            async with asyncio.timeout(seconds):
                return await self._post(question)
        except TimeoutError:
            reason = f"it did not answer within {round(seconds, 2):g} s"
        except ForbiddenAddressError as error:
            reason = str(error)
        except SecretUnavailableError as error:
            reason = f"its key cannot be read: {error}"
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException, OSError):
            reason = f"{host} cannot be reached"
        except (httpcore.UnsupportedProtocol, httpx.InvalidURL, httpx.DecodingError, ValueError):
            reason = f"{host} sent an invalid response"
        raise HookAnswerError(reason)

    async def _post(self, question: bytes) -> bytes:
        headers = {
            "User-Agent": f"toold/{__version__}",
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Accept-Encoding": "identity",
        }
        if self._key is not None:
            key = await asyncio.to_thread(self._key.secret.read_header_value)
            headers["Authorization"] = f"Bearer {key}"
        request = httpx.Request("POST", self._url, headers=headers, content=question)
        async with self._network.acquire() as connection, connection.answer(request, lambda: None) as response:
            body, complete = await read_body(response, MAX_QUESTION_BYTES)
            if not complete:  # raised within the block, so that the connection with the unread rest is closed
                raise HookAnswerError(f"its answer has more than {MAX_QUESTION_BYTES // 1024**2} MiB")
        if response.status_code == _NO_CONTENT:
            return b"{}"
        if response.status_code != _OK:
            raise HookAnswerError(f"it answered with HTTP {response.status_code}")
        return body

    async def run(self) -> None:
        """Does nothing: connections are opened when they are needed."""

    async def close(self) -> None:
        """Closes the connections."""
        await self._network.close()
