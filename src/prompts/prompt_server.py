"""Asks Phoenix, LiteLLM or a registry for a prompt.

Each question has one time limit. Redirects are refused, addresses are checked as those of sources are, and answers are
limited in size. No message contains a key, or the text of an error that a server sent, which may quote one.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlsplit

import httpcore
import httpx
import msgspec

from ..sources import AddressPolicy, CheckedNetwork, ForbiddenAddressError, read_body
from ..tools import SecretUnavailableError
from ..version import __version__
from .front_matter import PromptFormatError
from .kept_prompts import PromptAddress
from .prompt_settings import PromptServerSettings, ServerName
from .server_answers import StoredPrompt, litellm_prompt, phoenix_prompt, registry_prompt

MAX_ANSWER_BYTES: Final = 8 * 1024**2
"""Of one answer. A prompt of a million characters fits, with its escapes and the messages around it."""
MAX_REQUESTS_PER_SERVER: Final = 8
"""At the same time; further questions wait, within their time limit."""

_OK: Final = 200
_BAD_REQUEST: Final = 400
_NOT_FOUND: Final = 404
_UNPROCESSABLE: Final = 422


class SourceAnswer(NamedTuple):
    """What a source has for a role: a prompt, or the reason why it has none."""

    prompt: StoredPrompt | None
    reason: str = ""
    has_failed: bool = False
    """Whether it could not be asked, or its answer cannot be used, so that it may have the prompt."""


class _UnusableAnswerError(Exception):
    """The server cannot be asked, or its answer cannot be used; the message gives the reason."""


class _HttpAnswer(NamedTuple):
    status: int
    body: bytes


class PromptServer:
    """One server."""

    def __init__(self, name: ServerName, settings: PromptServerSettings) -> None:
        self._settings = settings
        self._network = CheckedNetwork(AddressPolicy(settings.allow_private))
        self._free = asyncio.Semaphore(MAX_REQUESTS_PER_SERVER)
        self._base = _base_url(name, settings.url)
        questions: Mapping[ServerName, Callable[[PromptAddress], Awaitable[SourceAnswer]]] = {
            "phoenix": self._ask_phoenix,
            "litellm": self._ask_litellm,
            "registry": self._ask_registry,
        }
        self._ask = questions[name]

    async def ask(self, address: PromptAddress) -> SourceAnswer:
        """Ask for a prompt. Never raises, and ends within ``timeout_s``."""
        if {address.ref, address.tag} & {".", ".."}:  # not a name, but a step in the path of the URL
            return SourceAnswer(None, f"it has no prompt {address.ref!r}")
        host = urlsplit(self._settings.url).hostname or self._settings.url
        try:
            async with asyncio.timeout(self._settings.timeout_s), self._free:
                return await self._ask(address)
        except (_UnusableAnswerError, ForbiddenAddressError) as error:
            reason = str(error)
        except SecretUnavailableError as error:
            reason = f"its key cannot be read: {error}"
        except PromptFormatError as error:
            reason = f"its prompt cannot be used: {error}"
        except (TimeoutError, httpcore.TimeoutException):
            reason = f"{host} did not answer within {self._settings.timeout_s:g} s"
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.UnsupportedProtocol, OSError):
            reason = f"{host} cannot be reached"
        except (httpx.InvalidURL, httpx.DecodingError, ValueError):
            reason = f"{host} sent an invalid response"
        return SourceAnswer(None, reason, has_failed=True)

    async def close(self) -> None:
        """Close the connections; those of running requests when they end."""
        await self._network.close()

    async def _ask_phoenix(self, address: PromptAddress) -> SourceAnswer:
        prompt = f"/v1/prompts/{quote(address.ref, safe='')}"
        tagged = await self._get(f"{prompt}/tags/{quote(address.tag, safe='')}")
        if tagged.status == _OK:
            return await _read(tagged, phoenix_prompt)
        if tagged.status != _NOT_FOUND:
            return _unusable(tagged, "it refuses the name or the tag: they are lower case letters, digits, - and _")
        latest = await self._get(f"{prompt}/latest")
        if latest.status == _NOT_FOUND:
            return SourceAnswer(None, f"it has no prompt {address.ref!r}")
        return await _read(latest, phoenix_prompt) if latest.status == _OK else _unusable(latest)

    async def _ask_litellm(self, address: PromptAddress) -> SourceAnswer:
        answer = await self._get(f"/prompts/{quote(address.ref, safe='')}/info")
        if answer.status == _NOT_FOUND or (answer.status == _BAD_REQUEST and b"not found" in answer.body):
            return SourceAnswer(None, f"it has no prompt {address.ref!r}")
        if answer.status == _OK:
            return await _read(answer, litellm_prompt)
        return _unusable(answer, forbidden="it shows prompts to keys of administrators only")

    async def _ask_registry(self, address: PromptAddress) -> SourceAnswer:
        answer = await self._get(f"/prompts/{quote(address.ref, safe='')}")
        if answer.status == _NOT_FOUND:
            return SourceAnswer(None, f"it has no prompt {address.ref!r}")
        return await _read(answer, registry_prompt) if answer.status == _OK else _unusable(answer)

    async def _get(self, path: str) -> _HttpAnswer:
        headers = {
            "User-Agent": f"toold/{__version__}",
            "Accept": "application/json",
            "Accept-Encoding": "gzip, deflate",
            # Prompts are asked for rarely: a kept connection would mostly be found closed by the server.
            "Connection": "close",
        }
        if self._settings.key is not None:
            key = await asyncio.to_thread(self._settings.key.secret.read_header_value)
            headers["Authorization"] = f"Bearer {key}"
        request = httpx.Request("GET", self._base + path, headers=headers)
        async with self._network.acquire() as connection, connection.answer(request, lambda: None) as response:
            if response.has_redirect_location:
                raise _UnusableAnswerError(
                    f"it redirects (HTTP {response.status_code}), which is refused; set url to the new place"
                )
            body, complete = await read_body(response, MAX_ANSWER_BYTES)
        if not complete:
            raise _UnusableAnswerError(f"it sent more than {MAX_ANSWER_BYTES // 1024**2} MiB")
        return _HttpAnswer(response.status_code, body)


def _base_url(name: ServerName, url: str) -> str:
    """The URL below which the paths are; the predecessors' settings of Phoenix and LiteLLM may end with ``/v1``."""
    base = url.partition("?")[0].partition("#")[0].rstrip("/")
    return base if name == "registry" else base.removesuffix("/v1")


async def _read(answer: _HttpAnswer, reader: Callable[[Any], StoredPrompt]) -> SourceAnswer:
    return SourceAnswer(await asyncio.to_thread(_decoded, answer.body, reader))


def _decoded(body: bytes, reader: Callable[[Any], StoredPrompt]) -> StoredPrompt:
    try:
        decoded = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise _UnusableAnswerError("its answer is not JSON") from None
    return reader(decoded)


def _unusable(answer: _HttpAnswer, unprocessable: str = "", *, forbidden: str = "") -> SourceAnswer:
    advice = {
        401: "it refuses the key",
        403: forbidden or "the key may not read prompts",
        _UNPROCESSABLE: unprocessable,
    }
    explanation = advice.get(answer.status, "")
    reason = f"it answered HTTP {answer.status}" + (f": {explanation}" if explanation else "")
    return SourceAnswer(None, reason, has_failed=True)
