"""The resources and prompts of one server: its latest listing, the pins of its prompts, and followed resources."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ...protocol.error_codes import CallError
from ...tools import ToolContext
from ..pin_storage import PinStorage
from ..pinned_catalog import PinnedCatalog
from ..source import QuarantinedVersion, SourceNote
from ..source_content import Entry, SourceContent, SourceEvents, SourcePrompt
from ..tool_pins import PinComparison, PinError
from ..upstream_definition import UpstreamListing
from .caller_session import ContentQuestion
from .content_listing import prompt_arguments, prompt_definition
from .upstream_failures import without_name

if TYPE_CHECKING:  # imports the SDK, which takes a second
    from .content_requests import ContentRequests, ListedContent

PROMPT_PINS: Final = ".prompts"
"""The suffix of the source's name in the name of its pins. Names of sources have no dot."""


_Ask = Callable[[ContentQuestion, ToolContext], Awaitable[dict[str, Any]]]


class UpstreamContent:
    """The resources and prompts of one server. Implements ``ContentSource``."""

    def __init__(self, source: str, pins: PinStorage, events: SourceEvents, timeout_s: float, ask: _Ask) -> None:
        """``ask`` sends a request in a session with the server."""
        self._ask = ask
        self._source = source
        self._events = events
        self._timeout_s = timeout_s
        taken = partial(events.taken_prompts, source)
        self._prompts = PinnedCatalog(source, pins, taken, kept_as=f"{source}{PROMPT_PINS}")
        self._listed: ListedContent | None = None
        self._followed: frozenset[str] = frozenset()
        self._follow_others = asyncio.Event()
        self.latest = SourceContent()
        """The content that callers see."""

    def __repr__(self) -> str:
        return f"<UpstreamContent {self._source}>"

    @property
    def notes(self) -> Sequence[SourceNote]:
        """The notes about omitted entries and quarantined prompts."""
        listed = () if self._listed is None else self._listed.notes
        quarantined = [
            SourceNote("quarantined", f"the prompt {comparison.definition.name}", comparison.quarantine_reason)
            for comparison in self._prompts.latest.comparisons
            if comparison.quarantine_reason is not None
        ]
        return (*listed, *quarantined)

    @property
    def quarantined(self) -> tuple[str, ...]:
        """The server's names of the quarantined prompts."""
        return self._prompts.latest.quarantined

    @property
    def waiting(self) -> list[QuarantinedVersion]:
        """The versions of prompts that wait for approval."""
        return self._prompts.latest.waiting("prompt")

    async def approve(self, prompt: str, digest: str) -> tuple[str, ...]:
        """Approves a version of a prompt, by its served or upstream name; returns its upstream name.

        Raises:
            PinConflictError: another version was approved meanwhile.
            PinError: the pins cannot be written.
        """
        selected = self._prompts.latest.select_quarantined(prompt, digest)
        if selected:
            try:
                await self._prompts.approve(selected)
            finally:
                self._publish()
        return tuple(comparison.definition.name for comparison in selected)

    async def reload(self, revisions: Mapping[str, int]) -> bool:
        """Compares the prompts with the pins if other nodes have changed them. Returns whether they have.

        Raises:
            PinError: the pins cannot be read.
        """
        changed = await self._prompts.reload(revisions)
        if changed:
            self._publish()
        return changed

    async def update(self, requests: "ContentRequests", *, pin: bool = True) -> None:
        """Lists resources and prompts again, and publishes them if they have changed.

        Raises:
            Exception: the session has ended, or the server did not list them.
            PinError: the pins cannot be read or written.
        """
        listed = await requests.listing()
        if listed == self._listed:
            return
        if not self._prompts.restored:
            await self._prompts.restore()
        definitions = [prompt_definition(entry) for entry in listed.prompts.values()]
        await self._prompts.update(UpstreamListing(definitions))
        self._listed = listed
        self._publish()
        if pin and await self._prompts.save():
            self._publish()

    async def report_updates(self, requests: "ContentRequests") -> None:
        """Maintains the subscriptions of one session until it is cancelled."""
        if self.latest.subscribes:
            await requests.follow(lambda: self._followed, self._follow_others)

    def follow(self, uris: frozenset[str]) -> None:
        """Implements ``ContentSource.follow``."""
        if uris != self._followed:
            self._followed = uris
            self._follow_others.set()

    async def read_resource(self, uri: str, context: ToolContext) -> dict[str, Any]:
        """Implements ``ContentSource.read_resource``."""
        return await self._ask(lambda requests, seconds: requests.read(uri, seconds), context)

    async def get_prompt(self, name: str, arguments: Mapping[str, str], context: ToolContext) -> dict[str, Any]:
        """Implements ``ContentSource.get_prompt``."""
        return await self._ask(lambda requests, seconds: requests.get_prompt(name, arguments, seconds), context)

    async def complete(self, params: Mapping[str, Any], context: ToolContext) -> dict[str, Any]:
        """Implements ``ContentSource.complete``."""
        return await self._ask(lambda requests, seconds: requests.complete(params, seconds), context)

    def _publish(self) -> None:
        listed = self._listed
        if listed is None:
            return
        prompts = {
            comparison.served: self._prompt(comparison, listed.prompts[comparison.definition.name])
            for comparison in self._prompts.latest.comparisons
            if comparison.definition.name in listed.prompts
        }
        self.latest = SourceContent(
            listed.resources,
            listed.templates,
            prompts,
            reads=listed.reads,
            completes=listed.completes,
            subscribes=listed.subscribes,
            timeout_s=self._timeout_s,
        )
        self._events.content_changed(self._source)

    def _prompt(self, comparison: PinComparison, entry: Entry) -> SourcePrompt:
        shown: dict[str, Any] = {**entry, "name": comparison.served}
        if arguments := prompt_arguments(entry):
            shown["arguments"] = arguments
        else:
            shown.pop("arguments", None)
        return SourcePrompt(comparison.definition.name, shown, self._withheld(comparison))

    def _withheld(self, comparison: PinComparison) -> str | None:
        if comparison.quarantine_reason is None:
            return None
        return (
            f"The prompt {comparison.served!r} {comparison.quarantine_reason} since the prompts of {self._source} were "
            f"pinned; it is quarantined until the operator approves it (`toold sources review {self._source}`)."
        )


def content_problem(source: str, error: CallError | PinError) -> str:
    """Why the resources and prompts of a source were not listed, for the operator."""
    why = without_name(source, error) if isinstance(error, CallError) else str(error)
    return f"source {source}: its resources and prompts were not listed: {why}"
