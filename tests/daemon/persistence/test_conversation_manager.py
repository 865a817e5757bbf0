"""Conversations on a real store: locked by one call at a time, private to a principal, limited in size, stored
atomically."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.daemon.dispatch import ConversationCaller
from toold.daemon.persistence.conversation_manager import ConversationManager, LockedConversation, newest
from toold.fairness import Permits, RunPermit
from toold.protocol.error_codes import InvalidArgumentsError, NotFoundError, ServiceUnavailableError
from toold.protocol.tool_call import LOCAL, Principal
from toold.providers import ModelCatalog
from toold.store import ConversationCopy, Retention, Store, StoredTurn, StoreError, open_sqlite_store
from toold.tools import MAX_STATE_BYTES, Turn


def caller(principal: Principal) -> ConversationCaller:
    return ConversationCaller(principal, "s-1", "call-1")


class Harness:
    """Conversations on a separate store, and calls that hold them."""

    def __init__(self, store: Store, permits: Permits) -> None:
        self.store = store
        self.permits = permits
        self.conversations = ConversationManager(store, ModelCatalog.load(), max_tokens=1000)
        self.ids: list[str] = []
        """The ids of the conversations that were held, in order."""

    async def say(
        self,
        conversation_id: str | None,
        *texts: str | Turn,
        principal: Principal = LOCAL,
        state: Any = None,
        fails: BaseException | None = None,
    ) -> LockedConversation:
        """One call that adds turns and may set the state or fail."""
        async with (
            RunPermit(Permits("session", 100), self.permits) as permit,
            self.conversations.hold(conversation_id, caller(principal), permit, lambda: None) as held,
        ):
            for text in texts:
                held.add(Turn("user", text) if isinstance(text, str) else text)
            if state is not None:
                held.state = state
            self.ids.append(held.id)
            if fails is not None:
                raise fails
        return held

    async def reported(self, conversation_id: str) -> list[str]:
        """The texts of a conversation."""
        return [turn.text for turn in (await self.say(conversation_id)).turns]


@pytest.fixture
async def harness(tmp_path: Path, audit_key: bytes) -> AsyncIterator[Harness]:
    store = open_sqlite_store(tmp_path / "toold.db", content=json.dumps, retention=Retention(), key=audit_key)
    yield Harness(store, Permits("running", 4))
    await store.close()


async def test_conversation_continues_from_its_last_state(harness: Harness) -> None:
    """A call finds the turns and the state that the previous call stored."""
    first = await harness.say(None, "a", "b", state={"n": 1})
    second = await harness.say(first.id, "c")
    assert second.id == first.id
    assert [turn.text for turn in second.turns] == ["a", "b", "c"]
    assert second.state == {"n": 1}
    assert all(turn.at > 0 for turn in second.turns)


async def test_each_new_conversation_is_its_own(harness: Harness) -> None:
    """A call without an id begins a new conversation."""
    first, second = await harness.say(None, "a"), await harness.say(None, "b")
    assert first.id != second.id
    assert await harness.reported(first.id) == ["a"]


@pytest.mark.parametrize("conversation_id", ["nothing", "", "\ud800", "x" * 10_000])
async def test_unknown_id_is_not_found(harness: Harness, conversation_id: str) -> None:
    """An unknown id is an error of limited length with a remedy."""
    with pytest.raises(NotFoundError, match="omit continuation_id to begin a new conversation") as caught:
        await harness.say(conversation_id, "a")
    assert len(caught.value.message) < 400


async def test_another_principals_conversation_is_not_found(harness: Harness) -> None:
    """Another principal's conversation has the same error as one that does not exist."""
    conversation = await harness.say(None, "mine")
    with pytest.raises(NotFoundError) as caught:
        await harness.say(conversation.id, "yours?", principal=Principal("somebody"))
    assert "does not exist" in caught.value.message
    assert await harness.reported(conversation.id) == ["mine"]


async def test_failing_call_adds_nothing(harness: Harness) -> None:
    """A failing call stores neither turns nor state, and creates no conversation."""
    conversation = await harness.say(None, "a", state=1)
    with pytest.raises(RuntimeError, match="broken"):
        await harness.say(conversation.id, "b", state=2, fails=RuntimeError("broken"))
    held = await harness.say(conversation.id)
    assert ([turn.text for turn in held.turns], held.state) == (["a"], 1)
    with pytest.raises(asyncio.CancelledError):
        await harness.say(None, "b", fails=asyncio.CancelledError())
    with pytest.raises(NotFoundError):
        await harness.reported(harness.ids[-1])


async def test_calls_of_one_conversation_run_in_turn_and_release_their_permits(harness: Harness) -> None:
    """Calls of one conversation run one after the other; waiting calls hold no permit, and each finds the earlier
    turns."""
    conversation = await harness.say(None, "0")
    waits: list[str] = []
    begun, proceed = asyncio.Event(), asyncio.Event()

    async def call(text: str) -> int:
        async with (
            RunPermit(Permits("session", 100), harness.permits) as permit,
            harness.conversations.hold(conversation.id, caller(LOCAL), permit, lambda: waits.append(text)) as held,
        ):
            begun.set()
            await proceed.wait()
            held.add(Turn("user", text))
            return len(held.turns)

    calls = [asyncio.create_task(call(str(n))) for n in range(1, 8)]
    await begun.wait()
    while len(waits) < 6:
        await asyncio.sleep(0)
    assert harness.permits.in_use == 1
    proceed.set()
    assert sorted(await asyncio.gather(*calls)) == [2, 3, 4, 5, 6, 7, 8]
    assert sorted(await harness.reported(conversation.id)) == list("01234567")
    assert harness.permits.in_use == 0
    assert repr(harness.conversations) == "<ConversationManager locked=0>"


async def test_cancelled_wait_leaves_the_lock(harness: Harness) -> None:
    """A call that is cancelled while it waits does not block the others and keeps no permit."""
    conversation = await harness.say(None, "a")
    permit = RunPermit(Permits("session", 1), harness.permits)
    async with harness.conversations.hold(conversation.id, caller(LOCAL), permit, lambda: None) as held:
        waiting = asyncio.create_task(harness.say(conversation.id, "never"))
        while harness.conversations._locks[LOCAL.name, conversation.id].users < 2:
            await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        held.add(Turn("user", "b"))
    assert await harness.reported(conversation.id) == ["a", "b"]
    assert harness.permits.in_use == 0


async def test_oldest_turns_are_deleted_and_the_state_stays(harness: Harness) -> None:
    """A conversation is limited by tokens, not by turns."""
    conversation = await harness.say(None, "old " * 300, state={"kept": True})
    for n in range(20):
        await harness.say(conversation.id, f"{n} " + "word " * 200)
    held = await harness.say(conversation.id)
    texts = [turn.text.split()[0] for turn in held.turns]
    assert texts == [str(n) for n in range(20)][-len(texts) :]
    assert 1 < len(texts) < 10
    assert held.state == {"kept": True}


async def test_oversized_state_is_refused(harness: Harness) -> None:
    """A state over the limit is refused; the stored turns stay."""
    conversation = await harness.say(None, "a", state=1)
    with pytest.raises(InvalidArgumentsError, match="begin a new conversation"):
        await harness.say(conversation.id, "b", state="x" * MAX_STATE_BYTES)
    assert await harness.reported(conversation.id) == ["a"]


async def test_unwritable_store_refuses_calls_early(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call is refused before it runs if its conversation cannot be stored."""
    monkeypatch.setattr(type(harness.store), "problem", property(lambda _: "disk full"))
    with pytest.raises(ServiceUnavailableError, match="disk full"):
        await harness.say(None, "a")


async def test_failed_write_does_not_block_the_answer(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    """The call succeeds although its conversation cannot be written."""

    async def refuse(*_: object) -> None:
        raise StoreError("the disk refuses", "disk full")

    monkeypatch.setattr(harness.store.conversations, "update", refuse)
    assert [turn.text for turn in (await harness.say(None, "a")).turns] == ["a"]


async def copies(harness: Harness) -> list[ConversationCopy]:
    await harness.store.flush()
    harness.store.conversations.copy_enabled = True
    return await harness.store.conversations.unsent_copies(0, 100, 10**6)


async def test_messages_are_copied_if_enabled(harness: Harness) -> None:
    """Each turn is copied once, with its role, tool, model, vendor and call."""
    harness.store.conversations.copy_enabled = True
    answer = Turn("assistant", "b", tool="chat", model="glm-4.6")
    conversation = await harness.say(None, Turn("user", "a", tool="chat", files=("x.py",)), answer)
    await harness.say(conversation.id, Turn("assistant", "c", model="a-model-that-nobody-knows"))
    await harness.say(conversation.id, state={"noted": "alone"})
    result = await copies(harness)
    assert [(item.position, item.role, item.provider, item.model) for item in result] == [
        (1, "user", None, None),
        (2, "assistant", "glm", "glm-4.6"),
        (3, "assistant", None, "a-model-that-nobody-knows"),
    ]
    assert result[0].content == {"tool": "chat", "text": "a", "files": ["x.py"]}
    whose = {(item.conversation_id, item.principal, item.session_id, item.call_id) for item in result}
    assert whose == {(conversation.id, "local", "s-1", "call-1")}


async def test_nothing_is_copied_if_disabled(harness: Harness) -> None:
    """Turns that are added while copying is disabled are not copied later."""
    conversation = await harness.say(None, "a")
    assert await copies(harness) == []
    await harness.say(conversation.id, "b")
    assert [message.content["text"] for message in await copies(harness)] == ["b"]


async def test_failing_call_leaves_no_copy(harness: Harness) -> None:
    """The turns of a failing call are not copied."""
    harness.store.conversations.copy_enabled = True
    with pytest.raises(RuntimeError):
        await harness.say(None, "a", fails=RuntimeError("broken"))
    assert await copies(harness) == []


async def test_message_too_long_to_store_is_copied(harness: Harness) -> None:
    """A message too long to store is copied, and the next message gets the next number."""
    harness.store.conversations.copy_enabled = True
    conversation = await harness.say(None, "a", "long " * 2000)
    assert await harness.reported(conversation.id) == []
    await harness.say(conversation.id, "b")
    assert [(message.position, message.content["text"][:5]) for message in await copies(harness)] == [
        (1, "a"),
        (2, "long "),
        (3, "b"),
    ]


@given(st.lists(st.integers(0, 50)), st.integers(-10, 200))
def test_newest_turns_that_fit_are_selected(tokens: list[int], bound: int) -> None:
    """The selected turns are the longest suffix of the conversation within the limit."""
    turns = [StoredTurn(n, size, "{}") for n, size in enumerate(tokens)]
    stored = list(newest(turns, bound))
    assert stored == turns[len(turns) - len(stored) :]
    assert sum(turn.tokens for turn in stored) <= bound or not stored
    if len(stored) < len(turns):
        assert sum(turn.tokens for turn in turns[-len(stored) - 1 :]) > bound
