"""Conversations on the store: held by one call at a time, bound to their principal, bounded in tokens."""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, Final

import msgspec
import structlog

from ...protocol.error_codes import InvalidArgumentsError, NotFoundError, ServiceUnavailableError
from ...protocol.tool_call import Principal
from ...providers import ModelCatalog
from ...store import ConversationUpdate, NewCopy, Store, StoredConversation, StoredTurn, StoreError
from ...tools import MAX_STATE_BYTES, Turn, estimate_tokens
from ..dispatch import RunPermit, Speaker
from .journal_timeout import not_on_disk

_SHOWN_ID_CHARS: Final = 80

Copied = Callable[[int, Turn], NewCopy] | None
"""What of a turn with its number is to be copied; None where nothing is."""

_log = structlog.get_logger(__name__)


class LockedConversation:
    """One conversation, while a call holds it. Satisfies ``tools.Conversation``."""

    def __init__(self, conversation_id: str, kept: StoredConversation | None = None) -> None:
        self.id = conversation_id
        self._kept: list[StoredTurn] = kept.turns if kept else []
        self._last_number = kept.last_number if kept else 0
        self._told = [msgspec.json.decode(turn.body, type=Turn) for turn in self._kept]
        self._added: list[Turn] = []
        self._state_before = kept.state if kept else "null"
        self.state: Any = msgspec.json.decode(self._state_before)

    def __repr__(self) -> str:
        return f"<LockedConversation {self.id} turns={len(self.turns)}>"

    @property
    def turns(self) -> Sequence[Turn]:
        return (*self._told, *self._added)

    def add(self, turn: Turn) -> None:
        self._added.append(msgspec.structs.replace(turn, at=time.time()))

    def spoken(self, speaker: Speaker, said: Copied, *, max_tokens: int) -> ConversationUpdate | None:
        """What there is to be stored, bounded, with what ``said`` makes of each new turn to have it copied; None where
        nothing was said.

        Raises:
            InvalidArgumentsError: its state is too large.
            TypeError, ValueError: its state is no JSON.
        """
        state = msgspec.json.encode(self.state).decode()
        if not self._added and state == self._state_before:
            return None
        if len(state.encode()) > MAX_STATE_BYTES:
            raise InvalidArgumentsError(
                f"This conversation has noted {len(state):,} characters of findings, more than the {MAX_STATE_BYTES:,} "
                "bytes that are kept; leave continuation_id out to begin a new one."
            )
        numbered = list(enumerate(self._added, self._last_number + 1))
        last = self._last_number + len(numbered)
        new = [_kept_turn(number, turn) for number, turn in numbered]
        kept = newest([*self._kept, *new], max_tokens - estimate_tokens((state,)))
        first = kept[0].number if kept else last + 1
        return ConversationUpdate(
            id=self.id,
            principal=speaker.principal.name,
            at=time.time(),
            state=state,
            bytes=len(state.encode()) + sum(len(turn.body.encode()) for turn in kept),
            first_number=first,
            last_number=last,
            turns=[turn for turn in new if turn.number >= first],
            session_id=speaker.session_id,
            call_id=speaker.call_id,
            said=[said(number, turn) for number, turn in numbered] if said else [],
        )


def newest(turns: Sequence[StoredTurn], max_tokens: int) -> Sequence[StoredTurn]:
    """As many of the newest turns as come to at most ``max_tokens``."""
    used = 0
    for count, turn in enumerate(reversed(turns)):
        used += turn.tokens
        if used > max_tokens:
            return turns[len(turns) - count :]
    return turns


class ConversationManager:
    """All conversations of this daemon. ``max_tokens`` bounds each, and may change."""

    def __init__(self, store: Store, catalog: ModelCatalog, *, max_tokens: int) -> None:
        self.max_tokens = max_tokens
        self._store = store
        self._catalogue = catalog
        self._places: dict[tuple[str, str], _Place] = {}

    def __repr__(self) -> str:
        return f"<ConversationManager held={len(self._places)}>"

    @asynccontextmanager
    async def hold(
        self, continuation_id: str | None, speaker: Speaker, permit: RunPermit, on_wait: Callable[[], None]
    ) -> AsyncIterator[LockedConversation]:
        """``ToolContext.conversation``. While it waits for who holds it, after ``on_wait``, ``permit`` is lent back:
        calls of one conversation keep nobody else waiting.
        """
        if self._store.problem is not None:
            raise _unavailable(self._store.problem)
        if continuation_id is None:
            conversation = LockedConversation(secrets.token_hex(16))
            yield conversation
            await self._store_spoken(conversation, speaker)
            return
        async with self._turn((speaker.principal.name, continuation_id), permit, on_wait):
            conversation = LockedConversation(continuation_id, await self._find(continuation_id, speaker.principal))
            yield conversation
            await self._store_spoken(conversation, speaker)

    @asynccontextmanager
    async def _turn(self, key: tuple[str, str], permit: RunPermit, on_wait: Callable[[], None]) -> AsyncIterator[None]:
        place = self._places.setdefault(key, _Place())
        place.users += 1
        try:
            async with AsyncExitStack() as stack:
                if place.users > 1 and permit.held:
                    on_wait()
                    async with permit.paused():
                        await stack.enter_async_context(place.lock)
                else:
                    await stack.enter_async_context(place.lock)
                yield
        finally:
            place.users -= 1
            if not place.users:
                del self._places[key]

    async def _find(self, conversation_id: str, principal: Principal) -> StoredConversation:
        try:
            kept = await self._store.conversation(conversation_id, principal.name)
        except StoreError as error:
            raise _unavailable(error.reason) from error
        except UnicodeEncodeError:  # half of a surrogate pair: no conversation is called that
            kept = None
        if kept is None:
            raise NotFoundError(
                f"There is no conversation {conversation_id[:_SHOWN_ID_CHARS]!r}: it was not used for so long that it "
                "was removed, or it is somebody else's; leave continuation_id out to begin a new one.",
                details={"fields": {"continuation_id": "there is no such conversation"}},
            )
        return kept

    async def _store_spoken(self, conversation: LockedConversation, speaker: Speaker) -> None:
        said = self._said if self._store.copying else None
        spoken = conversation.spoken(speaker, said, max_tokens=self.max_tokens)
        if spoken is None:
            return
        reason = await not_on_disk(self._store.go_on(spoken))
        if reason is not None:
            # As with a call's result: the answer was paid for, and this is written when the disk is well again.
            _log.error("an answer is told before its conversation is on the disk", reason=reason)

    def _said(self, number: int, turn: Turn) -> NewCopy:
        # Where it is too long for a copy, it is cut from the end.
        content: dict[str, Any] = {"tool": turn.tool, "text": turn.text, "files": list(turn.files)}
        provider = None
        if turn.model:
            with suppress(InvalidArgumentsError):  # the vendor named one that the catalog does not know
                provider = self._catalogue.resolve(turn.model).provider
        return NewCopy(number=number, role=turn.role, content=content, at=turn.at, provider=provider, model=turn.model)


class _Place:
    """The line before one conversation."""

    __slots__ = ("lock", "users")

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.users = 0
        """Who holds it, and who waits."""


def _kept_turn(number: int, turn: Turn) -> StoredTurn:
    return StoredTurn(number, estimate_tokens((turn.text,)), msgspec.json.encode(turn).decode())


def _unavailable(reason: str) -> ServiceUnavailableError:
    return ServiceUnavailableError(f"Conversations cannot be read or kept at present ({reason}).", executed="no")
