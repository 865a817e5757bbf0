"""Asks Phoenix, LiteLLM or a registry for a prompt. Messages never contain the text of a server's error."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from ..sources import JsonAnswer, JsonServer, UnusableAnswerError
from .front_matter import PromptFormatError
from .kept_prompts import PromptAddress
from .prompt_list import LIST_FORMS, SourceListing, read_listing
from .prompt_settings import PromptServerSettings, ServerName
from .server_answers import StoredPrompt, litellm_prompt, phoenix_prompt, registry_prompt

_OK: Final = 200
_BAD_REQUEST: Final = 400
_NOT_FOUND: Final = 404
_UNPROCESSABLE: Final = 422


class SourceAnswer(NamedTuple):
    """The answer of a source for a role: a prompt, or the reason why there is none."""

    prompt: StoredPrompt | None
    reason: str = ""
    has_failed: bool = False
    """Whether the source could not be asked, or its answer cannot be used. It may then have the prompt."""


class PromptServer:
    """One server."""

    def __init__(self, name: ServerName, settings: PromptServerSettings) -> None:
        self._name = name
        self._server = JsonServer(
            _base_url(name, settings.url),
            table=f"[prompts.{name}]",
            key=settings.key,
            timeout_s=settings.timeout_s,
            allow_private=settings.allow_private,
        )
        questions: Mapping[ServerName, Callable[[PromptAddress], Awaitable[SourceAnswer]]] = {
            "phoenix": self._ask_phoenix,
            "litellm": self._ask_litellm,
            "registry": self._ask_registry,
        }
        self._ask = questions[name]

    async def ask(self, address: PromptAddress) -> SourceAnswer:
        """Ask for a prompt. Never raises, and ends within ``timeout_s``."""
        if {address.ref, address.tag} & {".", ".."}:  # not a name, but a dot segment of the URL's path
            return SourceAnswer(None, f"it has no prompt {address.ref!r}")
        try:
            return await self._server.ask(lambda: self._ask(address))
        except UnusableAnswerError as error:
            return SourceAnswer(None, str(error), has_failed=True)

    async def list_prompts(self) -> SourceListing:
        """Ask for the names of all prompts. Never raises, and ends within ``timeout_s``."""
        try:
            answer = await self._server.ask(lambda: self._get(LIST_FORMS[self._name].path))
            if answer.status != _OK:
                return SourceListing((), _unusable(answer).reason)
            return await asyncio.to_thread(lambda: read_listing(self._name, answer.decoded()))
        except (UnusableAnswerError, PromptFormatError) as error:
            return SourceListing((), str(error))

    async def close(self) -> None:
        """Close the connections. Connections of running requests are closed when the requests end."""
        await self._server.close()

    async def _ask_phoenix(self, address: PromptAddress) -> SourceAnswer:
        prompt = f"/v1/prompts/{quote(address.ref, safe='')}"
        tagged = await self._get(f"{prompt}/tags/{quote(address.tag, safe='')}")
        if tagged.status == _OK:
            return await _read(tagged, phoenix_prompt)
        if tagged.status != _NOT_FOUND:
            return _unusable(tagged, "it refuses the name or the tag; both are lower-case letters, digits, - and _")
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

    async def _get(self, path: str) -> JsonAnswer:
        return await self._server.request("GET", path)


def _base_url(name: ServerName, url: str) -> str:
    """The base URL of the paths. In the predecessors' settings, the URLs of Phoenix and LiteLLM may end with
    ``/v1``.
    """
    base = url.partition("?")[0].partition("#")[0].rstrip("/")
    return base if name == "registry" else base.removesuffix("/v1")


async def _read(answer: JsonAnswer, reader: Callable[[Any], StoredPrompt]) -> SourceAnswer:
    return SourceAnswer(await asyncio.to_thread(_decoded, answer, reader))


def _decoded(answer: JsonAnswer, reader: Callable[[Any], StoredPrompt]) -> StoredPrompt:
    try:
        return reader(answer.decoded())
    except PromptFormatError as error:
        raise UnusableAnswerError(f"its prompt cannot be used: {error}") from None


def _unusable(answer: JsonAnswer, unprocessable: str = "", *, forbidden: str = "") -> SourceAnswer:
    advice = {
        401: "it refuses the key",
        403: forbidden or "the key may not read prompts",
        _UNPROCESSABLE: unprocessable,
    }
    explanation = advice.get(answer.status, "")
    reason = f"it answered HTTP {answer.status}" + (f": {explanation}" if explanation else "")
    return SourceAnswer(None, reason, has_failed=True)
