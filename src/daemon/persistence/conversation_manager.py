"""Conversations: used by one call at a time, bound to their principal, limited in tokens, stored after each call."""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext, suppress
from typing import Any, Final

import msgspec
import structlog

from ...fairness import RunPermit
from ...protocol.error_codes import InvalidArgumentsError, NotFoundError, ServiceUnavailableError
from ...protocol.tool_call import Principal
from ...providers import ModelCatalog
from ...resource_catalog import StoredItem
from ...store import (
    ConversationHeldError,
    ConversationUpdate,
    NewCopy,
    Store,
    StoredConversation,
    StoredTurn,
    StoreError,
)
from ...tools import MAX_STATE_BYTES, Turn, estimate_tokens
from ..dispatch import ConversationCaller
from .journal_timeout import write_failure

_MAX_BEGUN: Final = 1000
"""The maximum number of conversations that are remembered as empty; others are read from the database."""
CLAIM_AGAIN_S: Final = 0.25
"""The interval at which a call checks whether another node still uses its conversation."""
_SHOWN_ID_CHARS: Final = 80

MakeCopy = Callable[[int, Turn], NewCopy] | None
"""Creates the copy of a turn with its number; None if conversations are not copied."""

_log = structlog.get_logger(__name__)


class LockedConversation:
    """One conversation while a call uses it. Implements ``tools.Conversation``."""

    def __init__(self, conversation_id: str, stored: StoredConversation | None = None) -> None:
        self.id = conversation_id
        self._stored_turns: list[StoredTurn] = stored.turns if stored else []
        self._last_number = stored.last_number if stored else 0
        self._decoded_turns = [msgspec.json.decode(turn.body, type=Turn) for turn in self._stored_turns]
        self._added: list[Turn] = []
        self._state_before = stored.state if stored else "null"
        self.state: Any = msgspec.json.decode(self._state_before)

    def __repr__(self) -> str:
        return f"<LockedConversation {self.id} turns={len(self.turns)}>"

    @property
    def turns(self) -> Sequence[Turn]:
        return (*self._decoded_turns, *self._added)

    def add(self, turn: Turn) -> None:
        self._added.append(msgspec.structs.replace(turn, at=time.time()))

    def pending_update(
        self, caller: ConversationCaller, make_copy: MakeCopy, *, max_tokens: int
    ) -> ConversationUpdate | None:
        """Returns the changes to store, limited to ``max_tokens``; None if there are none.

        Raises:
            InvalidArgumentsError: the state is too large.
            TypeError, ValueError: the state cannot be encoded as JSON.
        """
        state = msgspec.json.encode(self.state).decode()
        if not self._added and state == self._state_before:
            return None
        if len(state.encode()) > MAX_STATE_BYTES:
            raise InvalidArgumentsError(
                f"The state of this conversation has {len(state):,} characters of findings, more than the limit of "
                f"{MAX_STATE_BYTES:,} bytes; omit continuation_id to begin a new conversation."
            )
        numbered = list(enumerate(self._added, self._last_number + 1))
        last_number = self._last_number + len(numbered)
        new_turns = [_stored_turn(number, turn) for number, turn in numbered]
        turns = newest([*self._stored_turns, *new_turns], max_tokens - estimate_tokens((state,)))
        first_number = turns[0].number if turns else last_number + 1
        return ConversationUpdate(
            id=self.id,
            principal=caller.principal.name,
            at=time.time(),
            state=state,
            bytes=len(state.encode()) + sum(len(turn.body.encode()) for turn in turns),
            first_number=first_number,
            last_number=last_number,
            turns=[turn for turn in new_turns if turn.number >= first_number],
            session_id=caller.session_id,
            call_id=caller.call_id,
            copies=[make_copy(number, turn) for number, turn in numbered] if make_copy else [],
        )


def newest(turns: Sequence[StoredTurn], max_tokens: int) -> Sequence[StoredTurn]:
    """Returns as many of the newest turns as fit in ``max_tokens``."""
    used = 0
    for count, turn in enumerate(reversed(turns)):
        used += turn.tokens
        if used > max_tokens:
            return turns[len(turns) - count :]
    return turns


class ConversationManager:
    """All conversations of the daemon. ``max_tokens`` limits each, and may change."""

    def __init__(self, store: Store, catalog: ModelCatalog, *, max_tokens: int) -> None:
        self.max_tokens = max_tokens
        self.check_node: Callable[[str], Awaitable[None]] | None = None
        """In a cluster: declares the node of an epoch dead if nothing listens at its address. Never raises."""
        self._store = store
        self._catalog = catalog
        self._locks: dict[tuple[str, str], _ConversationLock] = {}
        # The principals and ids of conversations that have begun and were not used yet, so they are empty.
        self._begun: set[tuple[str, str]] = set()

    def __repr__(self) -> str:
        return f"<ConversationManager locked={len(self._locks)}>"

    @asynccontextmanager
    async def hold(
        self, continuation_id: str | None, caller: ConversationCaller, permit: RunPermit, on_wait: Callable[[], None]
    ) -> AsyncIterator[LockedConversation]:
        """Implements ``ToolContext.conversation``.

        If another call uses the conversation, calls ``on_wait`` and releases ``permit`` while it waits, so that the
        calls of one conversation do not block others.
        """
        if self._store.problem is not None:
            raise _unavailable(self._store.problem)
        if continuation_id is None:
            conversation = LockedConversation(secrets.token_hex(16))
            yield conversation
            await self._persist(conversation, caller)
            return
        async with self._locked((caller.principal.name, continuation_id), permit, on_wait):
            stored = await self._claim(continuation_id, caller.principal, permit, on_wait)
            conversation = LockedConversation(continuation_id, stored)
            try:
                yield conversation
                await self._persist(conversation, caller)
            finally:
                self._store.conversations.release(continuation_id)

    async def _claim(
        self, conversation_id: str, principal: Principal, permit: RunPermit, on_wait: Callable[[], None]
    ) -> StoredConversation:
        """Returns the conversation once no call on another node uses it."""
        if not self._store.conversations.shared:
            return await self._load(conversation_id, principal)
        try:
            return await self._load(conversation_id, principal, claimed=True)
        except ConversationHeldError as error:
            holder = error.holder
            on_wait()
        async with permit.paused() if permit.held else nullcontext():
            while True:
                if self.check_node is not None:
                    await self.check_node(holder)
                try:
                    return await self._load(conversation_id, principal, claimed=True)
                except ConversationHeldError as error:
                    holder = error.holder
                await asyncio.sleep(CLAIM_AGAIN_S)

    async def begin(self, conversation_id: str, principal: Principal) -> None:
        """Begins an empty conversation, unless the principal has one with this id. No other principal may have it.

        Raises:
            ServiceUnavailableError: the database cannot be read or written.
        """
        async with self._locked((principal.name, conversation_id), None, lambda: None):
            if (principal.name, conversation_id) not in self._begun and not await self.has(conversation_id, principal):
                self.begin_new(conversation_id, principal)

    def begin_new(self, conversation_id: str, principal: Principal) -> None:
        """Begins an empty conversation with an id that has never been stored.

        Raises:
            ServiceUnavailableError: the database cannot be written.
        """
        if self._store.problem is not None:
            raise _unavailable(self._store.problem)
        empty = ConversationUpdate(
            id=conversation_id,
            principal=principal.name,
            at=time.time(),
            state="null",
            bytes=len("null"),
            first_number=1,
            last_number=0,
            turns=[],
            session_id="",
            call_id="",
        )
        self._store.conversations.begin(empty)
        if self._store.conversations.shared:
            return  # another node may use it next
        if len(self._begun) >= _MAX_BEGUN:
            self._begun.clear()  # from now on, they are read from the database
        self._begun.add((principal.name, conversation_id))

    async def has(self, conversation_id: str, principal: Principal) -> bool:
        """Whether the principal has a conversation with this id.

        Raises:
            ServiceUnavailableError: the database cannot be read.
        """
        try:
            return await self._store.conversations.load(conversation_id, principal.name) is not None
        except StoreError as error:
            raise _unavailable(error.reason) from error

    async def newest(self, principal: Principal, limit: int) -> Sequence[StoredItem]:
        """Implements ``resource_catalog.ConversationReader.newest``.

        Raises:
            ServiceUnavailableError: the database cannot be read.
        """
        try:
            listed = await self._store.conversations.newest(principal.name, limit)
        except StoreError as error:
            raise _unavailable(error.reason) from error
        return [StoredItem(*conversation) for conversation in listed]

    async def read_turns(self, conversation_id: str, principal: Principal) -> list[dict[str, Any]]:
        """Implements ``resource_catalog.ConversationReader.read_turns``."""
        stored = await self._load(conversation_id, principal)
        return [msgspec.json.decode(turn.body) for turn in stored.turns]

    @asynccontextmanager
    async def _locked(
        self, key: tuple[str, str], permit: RunPermit | None, on_wait: Callable[[], None]
    ) -> AsyncIterator[None]:
        lock = self._locks.setdefault(key, _ConversationLock())
        lock.users += 1
        try:
            async with AsyncExitStack() as stack:
                if lock.users > 1 and permit is not None and permit.held:
                    on_wait()
                    async with permit.paused():
                        await stack.enter_async_context(lock.lock)
                else:
                    await stack.enter_async_context(lock.lock)
                yield
        finally:
            lock.users -= 1
            if not lock.users:
                del self._locks[key]

    async def _load(self, conversation_id: str, principal: Principal, *, claimed: bool = False) -> StoredConversation:
        """Returns a conversation. With ``claimed``, this process uses it from now on, or ConversationHeldError is
        raised.
        """
        conversations = self._store.conversations
        if (principal.name, conversation_id) in self._begun:
            self._begun.remove((principal.name, conversation_id))
            return StoredConversation(
                id=conversation_id, principal=principal.name, state="null", last_number=0, turns=[]
            )
        try:
            read = conversations.claim if claimed else conversations.load
            stored = await read(conversation_id, principal.name)
        except StoreError as error:
            raise _unavailable(error.reason) from error
        except UnicodeEncodeError:  # an unpaired surrogate, which no id contains
            stored = None
        if stored is None:
            raise NotFoundError(
                f"Conversation {conversation_id[:_SHOWN_ID_CHARS]!r} does not exist: it expired, or it belongs to "
                "another principal; omit continuation_id to begin a new conversation.",
                details={"fields": {"continuation_id": "no such conversation"}},
            )
        return stored

    async def _persist(self, conversation: LockedConversation, caller: ConversationCaller) -> None:
        make_copy = self._copy_of if self._store.conversations.copy_enabled else None
        update = conversation.pending_update(caller, make_copy, max_tokens=self.max_tokens)
        if update is None:
            return
        reason = await write_failure(self._store.conversations.update(update))
        if reason is not None:
            # The answer is sent, like a call's result: it was paid for, and the store retries the write.
            _log.error("answer sent before its conversation was persisted", reason=reason)

    def _copy_of(self, number: int, turn: Turn) -> NewCopy:
        # A text that is too long for a copy is cut at the end.
        content: dict[str, Any] = {"tool": turn.tool, "text": turn.text, "files": list(turn.files)}
        provider = None
        if turn.model:
            with suppress(InvalidArgumentsError):  # the vendor's answer names a model that the catalog does not have
                provider = self._catalog.resolve(turn.model).provider
        return NewCopy(number=number, role=turn.role, content=content, at=turn.at, provider=provider, model=turn.model)


class _ConversationLock:
    """Serializes the calls of one conversation."""

    __slots__ = ("lock", "users")

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.users = 0
        """The calls that hold the lock or wait for it."""


def _stored_turn(number: int, turn: Turn) -> StoredTurn:
    return StoredTurn(number, estimate_tokens((turn.text,)), msgspec.json.encode(turn).decode())


def _unavailable(reason: str) -> ServiceUnavailableError:
    return ServiceUnavailableError.content_free(
        f"Conversations cannot be read or stored at present ({reason}).", executed="no"
    )
