"""Conversations over the wire are isolated, ordered, and survive a restart."""

import asyncio
import re
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.e2e.conftest import Peer, Process

MODELS = ("kimi-k2.6", "glm-4.6", "auto")
CONVERSATIONS = 12
CALLS = 8


async def ask(peer: Any, request_id: str, prompt: str, **arguments: Any) -> dict[str, Any]:
    frame: dict[str, Any] = await peer.call(request_id, "chat", prompt=prompt, **arguments)
    assert frame["error"] is None, frame["error"]
    return frame


async def conversation_of_calls(daemon: "Process", name: str) -> None:
    """A conversation: one call, then many concurrent calls from two connections with any models."""
    async with daemon.peer() as first, daemon.peer() as second:
        begun = await ask(first, f"{name}-0", f"{name} begins", model=MODELS[0])
        conversation = begun["structured"]["continuation_id"]

        async def continue_conversation(peer: "Peer", numbers: range) -> list[int]:
            lengths = []
            for number in numbers:
                model = MODELS[number % len(MODELS)]
                frame = await ask(
                    peer, f"{name}-{number}", f"{name} number {number}", model=model, continuation_id=conversation
                )
                text = frame["outputs"][0]["text"]
                # The simulator echoes its prompt and the earlier turns.
                assert f'beginning with "{name} number {number}"' in text
                before = re.search(r'(\d+) earlier messages, the first begins "([^"]*)"', text)
                assert before is not None, text
                assert before[2] == f"{name} begins"
                assert frame["structured"]["continuation_id"] == conversation
                lengths.append(int(before[1]))
            return lengths

        half = CALLS // 2
        both = await asyncio.gather(
            continue_conversation(first, range(1, half + 1)), continue_conversation(second, range(half + 1, CALLS + 1))
        )
    # Sequential: each call saw all turns before it, and no two saw the same.
    assert sorted(both[0] + both[1]) == [2 * n for n in range(1, CALLS + 1)]


async def test_conversations_are_isolated(start_daemon: Callable[..., "Process"]) -> None:
    """With concurrent calls in many conversations, every call sees its own turns, complete and in order."""
    daemon = start_daemon()
    await asyncio.gather(*(conversation_of_calls(daemon, f"t{number}") for number in range(CONVERSATIONS)))
    assert daemon.stop() == 0
    assert not daemon.tracebacks()


async def test_a_conversation_continues_after_a_restart(start_daemon: Callable[..., "Process"], by: Any) -> None:
    """Its id works in the next daemon, with another tool, model and transport, and after a kill."""
    first = start_daemon()
    async with by("mcp over stdio", first) as peer:
        begun = await ask(peer, "1", "Remember the harbour.", model="glm-4.6")
    conversation = begun["structured"]["continuation_id"]
    assert first.stop() == 0
    second = start_daemon()
    async with second.peer() as peer:
        frame = await ask(peer, "2", "What was it?", model="kimi-k2.6", continuation_id=conversation)
        assert '2 earlier messages, the first begins "Remember the harbour."' in frame["outputs"][0]["text"]
        second.process.kill()
        second.process.wait()
    third = start_daemon()
    async with by("mcp over http", third) as peer:
        frame = await peer.call("3", "challenge", prompt="It was a harbour.", continuation_id=conversation)
        assert "4 earlier messages" in frame["outputs"][0]["text"]


async def test_an_interrupted_call_adds_no_turn(daemon: "Process") -> None:
    """After a cancel, a timeout or a vendor's error the conversation is unchanged."""
    async with daemon.peer(features=["stream"]) as peer:
        plain = {"model": "glm-4.6", "thinking": False}  # so that the first chunks belong to the answer
        conversation = (await ask(peer, "b", "Begin.", **plain))["structured"]["continuation_id"]

        async def fail(request_id: str, directives: str, **frame: Any) -> str:
            arguments = {"prompt": f"[[sim:{directives}]] Lost.", "continuation_id": conversation, **plain}
            await peer.send(op="call_tool", request_id=request_id, name="chat", arguments=arguments, **frame)
            if directives.startswith("hang_after"):
                await peer.until("stream_chunk", request_id)
                await peer.send(op="cancel", request_id=request_id)
            return str((await peer.until("call_tool_res", request_id))["error"]["code"])

        codes = Counter(
            [
                await fail("c", "hang_after=2"),
                await fail("t", "hang", timeout_ms=300),
                await fail("r", "status=400"),
            ]
        )
        assert codes == Counter(["CANCELLED", "TIMEOUT", "PROVIDER_ERROR"])
        frame = await ask(peer, "e", "Go on.", model="glm-4.6", continuation_id=conversation)
        assert "2 earlier messages" in frame["outputs"][0]["text"]


async def test_waiting_for_a_conversation_counts_towards_the_deadline(daemon: "Process") -> None:
    """A call behind a hanging one is informed, times out, and leaves no trace."""
    async with daemon.peer() as peer:
        conversation = (await ask(peer, "w", "Begin.", model="glm-4.6"))["structured"]["continuation_id"]
        held = {"prompt": "[[sim:hang]]", "model": "glm-4.6", "continuation_id": conversation}
        await peer.send(op="call_tool", request_id="held", name="chat", arguments=held)
        await peer.until("progress", "held")
        waits = {"prompt": "Next.", "model": "glm-4.6", "continuation_id": conversation}
        await peer.send(op="call_tool", request_id="waits", name="chat", arguments=waits, timeout_ms=500)
        ended = await peer.until("call_tool_res", "waits")
        assert ended["error"]["code"] == "TIMEOUT"
        await peer.send(op="cancel", request_id="held")
        await peer.until("call_tool_res", "held")
        frame = await ask(peer, "after", "Go on.", model="glm-4.6", continuation_id=conversation)
        assert "2 earlier messages" in frame["outputs"][0]["text"]
