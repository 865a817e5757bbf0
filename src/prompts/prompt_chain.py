"""Finds the prompt of a role: asks the sources in order, and falls back to the last known good prompt."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import structlog

from ..tools import PromptError, PromptQuery, ResolvedPrompt
from .front_matter import PromptFormatError
from .kept_prompts import KeptPrompts, PromptAddress
from .prompt_files import DEFAULT_NAME, prompt_in_file, prompt_in_folder
from .prompt_list import OwnListing, PromptListing, SourceListing, joined, prompts_in_folder, read_listing
from .prompt_server import PromptServer, SourceAnswer
from .prompt_settings import PhoenixSettings, PromptSettings, PromptSourceName, ServerName
from .prompt_templates import fill_template
from .server_answers import StoredPrompt, registry_prompt, stored_text

KEPT_PROMPTS_DIRECTORY: Final = "prompts"
"""The name of the directory of last known good prompts, in the state directory."""
_FORGETFUL: Final = frozenset({"litellm"})
"""Servers that may lose prompts. If LiteLLM reports that it lacks a prompt, the last known good prompt is used, because
after a restart its prompts in memory may differ from those in its database.
"""
_SERVERS: Final[Mapping[PromptSourceName, ServerName]] = {
    "phoenix": "phoenix",
    "litellm": "litellm",
    "registry": "registry",
}

OwnPrompts = Callable[[str], Mapping[str, Any] | None]
"""Returns a prompt of the served registry by its name, in the form of its answers; None if no registry is served.
Raises LookupError if the registry lacks the prompt.
"""

_log = structlog.get_logger("toold.prompts")


class SourceAttempt(NamedTuple):
    """A source that was asked but has no prompt for the role."""

    source: PromptSourceName
    answer: SourceAnswer

    def __str__(self) -> str:
        return f"{self.source}: {self.answer.reason}"


class PromptChain:
    """Implements ``PromptSource``.

    ``kept`` is the directory of the last known good prompts. If ``keeps`` is false, as for commands, the directory is
    only read, and warnings are not logged. ``own`` and ``own_listing`` belong to the registry that the daemon serves;
    they are used if no other registry is configured.
    """

    def __init__(
        self,
        settings: PromptSettings,
        kept: Path,
        *,
        keeps: bool = True,
        own: OwnPrompts = lambda _: None,
        own_listing: OwnListing = lambda: None,
    ) -> None:
        self._settings = settings
        self._servers = _servers(settings)
        self._kept = KeptPrompts(kept)
        self._keeps = keeps
        self._own, self._own_listing = own, own_listing
        # The requests in progress. Queries for the same prompt share one request.
        self._asking: dict[tuple[PromptServer, PromptAddress], asyncio.Task[SourceAnswer]] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def apply(self, settings: PromptSettings) -> None:
        """Use new settings from the next query on. Needs a running event loop."""
        if settings == self._settings:
            return
        retired = self._servers
        self._settings, self._servers = settings, _servers(settings)
        for server in retired.values():
            closing = asyncio.create_task(server.close())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        """Cancel the requests in progress, and close all connections."""
        asking = list(self._asking.values())
        for question in asking:
            question.cancel()
        for server in self._servers.values():
            await server.close()
        if waiting := [*asking, *self._closing]:
            await asyncio.wait(waiting)

    async def resolve(self, role: PromptQuery) -> ResolvedPrompt:
        """Return the role's prompt from the first source that has it.

        If no source has it, the last known good prompt of a server that may still have it (``uncertain``) is used, or
        else the default file.

        Raises:
            PromptError: no source has the prompt, or its template has an unknown variable.
        """
        settings, servers, attempts = self._settings, self._servers, list[SourceAttempt]()
        for source in settings.order:
            answer = await self._ask(source, role, settings, servers)
            if answer.prompt is not None:
                address = _address(source, role, settings)
                return await self._resolved(role, source, answer.prompt, attempts, keep_as=address)
            attempts.append(SourceAttempt(source, answer))
        for attempt in uncertain(attempts):
            if (address := _address(attempt.source, role, settings)) is None:
                continue
            if (kept := await asyncio.to_thread(self._kept.load, address)) is not None:
                warning = f"{attempt.source}: its last known good prompt is used, of {kept.last_good}"
                return await self._resolved(role, attempt.source, kept.prompt, attempts, warning)
        if "file" in settings.order:
            default = await _from_disk(partial(_default_prompt, settings))
            if default.prompt is not None:
                warning = "file: no source has a prompt for the role; the default file is used"
                return await self._resolved(role, "file", default.prompt, attempts, warning)
            attempts.append(SourceAttempt("file", default))
        raise PromptError(
            missing_prompt(role, attempts), f"no source has the prompt of the role {role.role!r}; ask the operator"
        )

    async def listed(self) -> PromptListing:
        """The prompts that roles can name now. All sources are asked at the same time."""
        settings, servers = self._settings, self._servers
        sources = [source for source in settings.order if source != "inline"]
        listings = await asyncio.gather(*(self._listing(source, settings, servers) for source in sources))
        return joined(dict(zip(sources, listings, strict=True)))

    async def _listing(
        self, source: PromptSourceName, settings: PromptSettings, servers: Mapping[ServerName, PromptServer]
    ) -> SourceListing:
        if source == "file":
            return await asyncio.to_thread(prompts_in_folder, settings.folder)
        server = servers.get(_SERVERS[source])
        if server is not None:
            return await server.list_prompts()
        own = self._own_listing() if source == "registry" else None
        return SourceListing(()) if own is None else read_listing("registry", {"prompts": own})

    async def _ask(
        self,
        source: PromptSourceName,
        role: PromptQuery,
        settings: PromptSettings,
        servers: Mapping[ServerName, PromptServer],
    ) -> SourceAnswer:
        if source == "inline":
            return await _from_disk(partial(_inline_prompt, role.inline))
        if source == "file":
            return await _from_disk(partial(_file_prompt, settings.folder, role))
        server, address = servers.get(_SERVERS[source]), _address(source, role, settings)
        if server is None and source == "registry" and role.ref:
            try:
                answer = self._own(role.ref)
            except LookupError:
                return SourceAnswer(None, f"it has no prompt {role.ref!r}")
            if answer is not None:
                return await _from_disk(lambda: SourceAnswer(registry_prompt(answer)))
        if server is None:
            return SourceAnswer(None, "is not configured")
        if address is None:
            return SourceAnswer(None, "the role has no prompt_ref")
        return await self._ask_once(server, address)

    async def _ask_once(self, server: PromptServer, address: PromptAddress) -> SourceAnswer:
        """Ask a server, or wait for its answer if it is already being asked for this prompt."""
        key = (server, address)
        question = self._asking.get(key)
        if question is None:
            question = asyncio.create_task(server.ask(address))
            self._asking[key] = question
            question.add_done_callback(lambda _: self._asking.pop(key, None))
        try:
            return await asyncio.shield(question)  # others may also wait for it
        except asyncio.CancelledError:
            if question.cancelled() and not _is_being_cancelled():
                return SourceAnswer(None, "the daemon is shutting down", has_failed=True)
            raise

    async def _resolved(
        self,
        role: PromptQuery,
        source: PromptSourceName,
        prompt: StoredPrompt,
        attempts: Sequence[SourceAttempt],
        warning: str = "",
        *,
        keep_as: PromptAddress | None = None,
    ) -> ResolvedPrompt:
        variables = {**prompt.defaults, **role.variables}
        try:
            text = await asyncio.to_thread(fill_template, prompt.text, prompt.template_format, variables)
        except PromptError as error:
            place = f"{source}, prompt {role.ref!r}" if keep_as is not None and role.ref else source
            raise PromptError(
                f"the prompt of the role {role.role!r} ({place}, version {prompt.version}): {error}"
            ) from None
        warnings = [str(attempt) for attempt in attempts if attempt.answer.has_failed]
        if keep_as is not None and self._keeps:
            try:
                await asyncio.to_thread(self._kept.keep, keep_as, prompt)
            except OSError as error:
                warnings.append(f"{source}: the prompt could not be stored on the disk ({error.strerror})")
        if warning:
            warnings.append(warning)
        if warnings and self._keeps:
            _log.warning("prompt has warnings", role=role.role, source=source, warnings=warnings)
        return ResolvedPrompt(text, source, prompt.version, prompt.model, tuple(warnings))


def uncertain(attempts: Sequence[SourceAttempt]) -> Iterator[SourceAttempt]:
    """The servers that may have the prompt although they did not return it, so that its last known good version may be
    used. If a server reports that it lacks the prompt, it was deleted there, unless the server may lose prompts.
    """
    return (attempt for attempt in attempts if attempt.answer.has_failed or attempt.source in _FORGETFUL)


def missing_prompt(role: PromptQuery, attempts: Sequence[SourceAttempt]) -> str:
    """The error if no source has the prompt. It names the prompt, and the reason of each source."""
    asked = f"the role {role.role!r}" + (f" (prompt_ref {role.ref!r})" if role.ref else "")
    return f"{asked} has no prompt. " + "; ".join(map(str, attempts))


def _servers(settings: PromptSettings) -> dict[ServerName, PromptServer]:
    return {name: PromptServer(name, server) for name, server in settings.servers}


def _address(source: PromptSourceName, role: PromptQuery, settings: PromptSettings) -> PromptAddress | None:
    """The request to a server for the role; None for other sources, and if the role names no prompt."""
    server = dict(settings.servers).get(_SERVERS[source]) if source in _SERVERS else None
    if server is None or not role.ref:
        return None
    tag = (role.tag or server.tag) if isinstance(server, PhoenixSettings) else ""
    return PromptAddress(source, server.url, role.ref, tag)


async def _from_disk(read: Callable[[], SourceAnswer]) -> SourceAnswer:
    try:
        return await asyncio.to_thread(read)
    except PromptFormatError as error:
        return SourceAnswer(None, str(error), has_failed=True)


def _inline_prompt(text: str | None) -> SourceAnswer:
    if not text:
        return SourceAnswer(None, "the role has no prompt in its configuration")
    return SourceAnswer(stored_text(text))


def _file_prompt(folder: Path, role: PromptQuery) -> SourceAnswer:
    names = tuple(dict.fromkeys(name for name in (role.ref, role.role) if name and name != DEFAULT_NAME))
    prompt = prompt_in_folder(folder, names)
    return SourceAnswer(prompt, "" if prompt else f"{folder} has no file {' or '.join(map(repr, names))}")


def _default_prompt(settings: PromptSettings) -> SourceAnswer:
    if settings.default_file is None:
        prompt = prompt_in_folder(settings.folder, (DEFAULT_NAME,))
        return SourceAnswer(prompt, "" if prompt else "there is no default file")
    prompt = prompt_in_file(settings.default_file)
    return SourceAnswer(prompt, "" if prompt else f"there is no default_file {settings.default_file}")


def _is_being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
