"""Long messages, answers and pages of A2A do not stop the event loop."""

import threading
from typing import Any

import msgspec
import pytest
from tests.tools.agents.hosted import script
from toold.daemon.transports.a2a import a2a_operations, a2a_rpc, a2a_tasks
from toold.daemon.transports.a2a.task_view import TaskView, encoded_bytes
from toold.protocol.json_pieces import LONG_BYTES
from toold.store import A2ATaskRow
from toold.tools import tool_result

from .conftest import A2APort, message

pytestmark = pytest.mark.asyncio(loop_scope="module")

FUNCTIONS = [
    (a2a_operations, "read_send"),
    (a2a_operations, "_read_0_3"),
    (a2a_tasks, "view_of"),
    (a2a_rpc, "_encode_0_3"),
]


async def test_long_messages_and_answers_are_handled_in_a_thread(
    port: A2APort, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In both versions they are read and encoded outside of the event loop, and the answer has the whole text."""
    threads: dict[str, list[bool]] = {name: [] for _, name in FUNCTIONS}

    def recorded(name: str, work: Any) -> Any:
        def record(*values: Any) -> Any:
            threads[name].append(threading.current_thread() is threading.main_thread())
            return work(*values)

        return record

    for module, name in FUNCTIONS:
        monkeypatch.setattr(module, name, recorded(name, getattr(module, name)))
    monkeypatch.setattr(tool_result, "AT_ONCE_BYTES", LONG_BYTES)  # no model's window has a text of its size
    text = "x" * LONG_BYTES + '"' * 2_001  # with few quotes, decoding it would take milliseconds, on the event loop
    task = await port.client.ask("helper", message(script(text), "m-long"))
    assert task["artifacts"][0]["parts"][0]["text"] == text
    old = {"messageId": "m-long-old", "role": "user", "parts": [{"kind": "text", "text": script(text)}]}
    answer = await port.client.rpc("helper", "message/send", {"message": old}, "0.3")
    assert answer["result"]["artifacts"][0]["parts"][0] == {"kind": "text", "text": text}
    assert answer["result"]["history"][0]["parts"] == old["parts"]
    assert threads["read_send"] == [False, False]  # once by each version
    assert threads["_read_0_3"] == threads["_encode_0_3"] == [False]
    assert False in threads["view_of"]
    params = {"message": {**old, "messageId": "m-stream-old"}}
    async with port.client.stream("helper", "message/stream", params, "0.3") as events:
        assert "x" * LONG_BYTES in (await events.aread()).decode()


async def test_a_page_ends_at_its_bytes_and_the_next_goes_on(port: A2APort, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page with more bytes ends early with a token; all pages together have each task once."""
    context = {"contextId": "of-pages"}
    sent = {
        (await port.client.ask("helper", message("hi " * 50, f"p{number}", **context)))["id"] for number in range(3)
    }
    monkeypatch.setattr(a2a_operations, "MAX_PAGE_BYTES", 600)
    for fields in ({"historyLength": 0, "includeArtifacts": True}, {}, {"historyLength": 1}):
        listed: list[str] = []
        pages = 0
        token = None
        while token != "":
            params = {**context, **fields, **({"pageToken": token} if token else {})}
            page = (await port.client.rpc("helper", "ListTasks", params))["result"]
            listed += [task["id"] for task in page["tasks"]]
            token, pages = page["nextPageToken"], pages + 1
            assert page["totalSize"] == 3
            assert all(("history" in task) is (fields.get("historyLength") != 0) for task in page["tasks"])
        assert (sorted(listed), pages > 1) == (sorted(sent), True)


async def test_messages_of_a_task_are_not_decoded() -> None:
    """They are sent as they are stored, and are not looked at for ``historyLength`` 0."""
    fields: Any = {"principal": "p", "agent": "a", "context_id": "c", "state": "s", "changed_at": 0.0, "ended": True}
    stored = A2ATaskRow(id="t", history=b'[{"messageId":"1"},{"messageId":"2"}]', **fields)
    task = TaskView(stored).as_task()
    assert isinstance(task["history"], msgspec.Raw)
    assert encoded_bytes(task) == len(stored.history)
    assert bytes(TaskView(stored).as_task(1)["history"]) == b'[{"messageId":"2"}]'
    assert "history" not in TaskView(msgspec.structs.replace(stored, history=b"no JSON")).as_task(0)
