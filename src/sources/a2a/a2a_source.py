"""A remote agent as a source of tools: reads its card regularly, and calls the agent."""

import asyncio
from collections.abc import Callable, Container, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final

import structlog

from ...fairness import Permits
from ...protocol.a2a.remote_card import UnusableCardError
from ...protocol.error_codes import CallError, OutcomeUnknownError, ServiceUnavailableError
from ...protocol.terminal_text import one_line
from ...protocol.tool_call import Annotations
from ...tools import OrchestrationContext, Tool, ToolOutput, Turn, continued_by_run
from ..address_policy import AddressPolicy
from ..checked_network import CheckedNetwork
from ..pin_storage import PinStorage
from ..pinned_catalog import PinnedCatalog
from ..source import QuarantinedVersion, SourceListener
from ..source_auth import worded_for_user
from ..source_settings import A2ASettings
from ..tool_pins import PinComparison, PinError
from ..upstream_catalog import withheld_reason
from ..upstream_definition import UpstreamListing
from .card_fetch import TrustedCard, fetch_card
from .remote_call import RemoteAgentArguments, RemoteCall, output_from
from .remote_client import RemoteClient
from .remote_http import RemoteHttp
from .remote_skills import listing_of

CARD_INTERVAL_S: Final = 60.0
"""The interval between reads of the card."""
FIRST_RETRY_S: Final = 2.0
MAX_RETRY_S: Final = 300.0
"""The maximum delay before an unusable card is read again; the delay doubles each time."""
CANCEL_S: Final = 10.0
"""The timeout of the request that cancels a task."""
_CLOSE_S: Final = 2.0
_STATE_KEY: Final = "a2a"
"""The key of the agents' contexts, by source, in a conversation's state."""
_ANNOTATIONS: Final = Annotations(
    read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=True
)

_log = structlog.get_logger("toold.sources.a2a")


class A2ASource:
    """Implements ``Source`` and ``Quarantine``."""

    def __init__(self, name: str, settings: A2ASettings, pins: PinStorage, taken: Callable[[], Container[str]]) -> None:
        """``taken`` returns the tool names that other sources use."""
        self._name = name
        self._settings = settings
        self._network = CheckedNetwork(AddressPolicy(settings.allow_private))
        self._http = RemoteHttp(name, settings, self._network)
        self._permits = Permits(name, settings.max_running)
        self._catalog = PinnedCatalog(name, pins, taken)
        self._wake = asyncio.Event()
        self._listener: SourceListener | None = None
        # The latest usable card, or why there is none yet. The event is set as soon as one of them is known.
        self._trusted: TrustedCard | None = None
        self._problem = "its card is being read"
        self._tried = asyncio.Event()
        self._cancelling: set[asyncio.Task[None]] = set()

    async def run(self, listener: SourceListener) -> None:
        self._listener = listener
        retry_s = FIRST_RETRY_S
        failing = False
        while True:
            self._wake.clear()
            try:
                if not self._catalog.restored:
                    await self._restore(listener)
                listing = await self._read()
                if failing or listing != self._catalog.listing or not self._tried.is_set():
                    await self._accept(listing, listener)
                failing, pause_s, retry_s = False, CARD_INTERVAL_S, FIRST_RETRY_S
            except (UnusableCardError, PinError) as error:
                failing, self._problem = True, str(error)
                listener.report_problem(f"source {self._name}: {self._problem}")
                pause_s, retry_s = retry_s, min(2 * retry_s, MAX_RETRY_S)
            self._tried.set()
            with suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._wake.wait()

    def refresh(self) -> None:
        self._wake.set()

    async def close(self) -> None:
        if self._cancelling:
            await asyncio.wait(self._cancelling, timeout=_CLOSE_S)
        await self._network.close()

    @property
    def quarantined(self) -> tuple[str, ...]:
        """The quarantined tools: the source's name, or the ids of skills."""
        return self._catalog.latest.quarantined

    @property
    def waiting(self) -> list[QuarantinedVersion]:
        """The versions that wait for approval."""
        return self._catalog.latest.waiting("tool")

    async def approve(self, tool: str, digest: str) -> tuple[str, ...]:
        """Approves a version of a tool, by its name here or the skill's id.

        Raises:
            PinConflictError: another version was approved meanwhile.
            PinError: the pins cannot be written.
        """
        selected = self._catalog.latest.select_quarantined(tool, digest)
        if selected and self._listener is not None:
            try:
                await self._catalog.approve(selected)
            finally:
                self._publish(self._listener)
        return tuple(comparison.definition.name for comparison in selected)

    async def reload_pins(self, revisions: Mapping[str, int]) -> None:
        """Changes of the card that this node accepts stay accepted, but are not pinned again; otherwise two nodes that
        read different cards would replace each other's pins forever.
        """
        if await self._catalog.reload(revisions) and self._listener is not None:
            if self._settings.on_change == "accept":
                self._catalog.accept_changes()
            self._publish(self._listener)

    async def check(self, listener: SourceListener) -> str:
        """Reads the card once and publishes the tools; returns the agent's name.

        Raises:
            UnusableCardError, PinError: the agent cannot be used.
        """
        await self._restore(listener)
        await self._catalog.update(await self._read())
        self._publish(listener)
        return one_line(self._trusted.card.name, 200) if self._trusted is not None else ""

    async def _restore(self, listener: SourceListener) -> None:
        """Lists the pinned tools. Their calls wait for the card."""
        if await self._catalog.restore():
            listener.restore(self._tools())

    async def _read(self) -> UpstreamListing:
        """Reads the card. If it cannot be used, the earlier card stays in use.

        Raises:
            UnusableCardError: the card cannot be used.
        """
        try:
            async with asyncio.timeout(self._settings.start_timeout_s):
                trusted = await fetch_card(self._http, self._settings)
        except TimeoutError:
            raise UnusableCardError(f"its card was not read within {self._settings.start_timeout_s:g} s") from None
        except CallError as error:
            raise UnusableCardError(error.message.rstrip(".")) from None
        self._trusted = trusted
        return listing_of(self._name, trusted, self._settings)

    async def _accept(self, listing: UpstreamListing, listener: SourceListener) -> None:
        await self._catalog.update(listing)
        changed = self._catalog.accept_changes() if self._settings.on_change == "accept" else ()
        for comparison in changed:
            _log.warning(
                "tool changed",
                source=self._name,
                tool=comparison.definition.name,
                change=comparison.quarantine_reason,
            )
        self._publish(listener)  # without an await after the names were chosen, because another source could take them
        if await self._catalog.save():
            self._publish(listener)

    def _publish(self, listener: SourceListener) -> None:
        listener.publish(self._tools(), self._catalog.latest.notes)

    def _tools(self) -> list[Tool]:
        return [self._tool(comparison) for comparison in self._catalog.latest.comparisons]

    def _tool(self, comparison: PinComparison) -> Tool:
        definition = comparison.definition
        skill = definition.name if self._settings.tools == "skills" else ""
        return Tool(
            comparison.served,
            definition.description,
            RemoteAgentArguments,
            partial(self._call, skill),
            _ANNOTATIONS,
            self._settings.timeout_s,
            orchestration=True,
            source=self._name,
            withheld=withheld_reason(self._name, comparison),
            credentials=() if self._settings.auth is None else self._settings.auth.credentials,
        )

    async def _call(self, skill: str, arguments: RemoteAgentArguments, context: OrchestrationContext) -> ToolOutput:
        """Calls the agent.

        Raises:
            CallError: the agent's failure, or the reason why it could not be called.
        """
        http = await self._http.of_caller(context)
        client = RemoteClient(http, self._settings.max_answer_bytes)
        try:
            async with (
                continued_by_run(arguments.continuation_id, context) as conversation,
                self._permits.of(context.principal.name, ""),
            ):
                call = RemoteCall(self._name, self._settings, client, await self._card(), context)
                try:
                    contexts = _contexts_of(conversation.state)
                    answered = await call.run(arguments, skill, contexts.get(self._name, ""))
                except asyncio.CancelledError:
                    if context.will_resume:
                        call.drop()
                    else:
                        self._cancel_later(call)
                    raise
                except CallError as error:
                    if not isinstance(error, OutcomeUnknownError):
                        self._cancel_later(call)
                    raise
                finally:
                    await call.close()
                output = output_from(answered, {"continuation_id": conversation.id})
                state = conversation.state if isinstance(conversation.state, dict) else {}
                conversation.state = {**state, _STATE_KEY: {**contexts, self._name: answered["context_id"]}}
                conversation.add(Turn("user", arguments.prompt, tool=context.tool_name))
                conversation.add(Turn("assistant", output.text or "", tool=context.tool_name))
                return output
        except CallError as error:
            error.message = http.redact_text(error.message)
            raise worded_for_user(error, self._name, self._settings.auth) from None

    async def _card(self) -> TrustedCard:
        """The card; waits for the first one.

        Raises:
            ServiceUnavailableError: there is no card.
        """
        if self._trusted is None:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._settings.start_timeout_s):
                    await self._tried.wait()
        if self._trusted is None:
            raise ServiceUnavailableError(
                f"{self._name} is not available: {self._problem}. The daemon retries automatically.",
                executed="no",
                retry_after_ms=1000,
            )
        return self._trusted

    def _cancel_later(self, call: RemoteCall) -> None:
        """Asks the agent to cancel the task of a call that has ended."""
        task = asyncio.create_task(self._cancel(call), name=f"cancel a task of {self._name}")
        self._cancelling.add(task)
        task.add_done_callback(self._cancelling.discard)

    async def _cancel(self, call: RemoteCall) -> None:
        try:
            async with asyncio.timeout(CANCEL_S):
                await call.cancel_task()
        except (CallError, TimeoutError) as error:
            _log.info("task not cancelled", source=self._name, reason=type(error).__name__)


def _contexts_of(state: Any) -> dict[str, str]:
    contexts = state.get(_STATE_KEY) if isinstance(state, dict) else None
    return {name: value for name, value in contexts.items() if isinstance(value, str)} if contexts else {}
