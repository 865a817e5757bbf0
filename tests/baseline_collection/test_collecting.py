"""A run against a real daemon: turns, loads, failures, preparation and cleanup."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from toold.client import MCPWebSocketClient, client_link

from baseline.collecting import CollectionError, Side, collect, connected, connections_for
from baseline.draft import Draft
from baseline.matrix import Case, Matrix, Step
from baseline.plan import rounds_for
from baseline.record import Call, Load, Record

Connect = Callable[[], MCPWebSocketClient]
Begin = Callable[..., Draft]
ONE = Load(concurrency=1)


@pytest.fixture
def begin(tmp_path: Path, make_record: Callable[..., Record]) -> Begin:
    """A function that begins a draft for the given tools, by default with three calls each."""

    def make(
        *tools: str, loads: tuple[Load, ...] = (ONE,), iterations: int = 3, warmup: int = 0, rounds: int = 1
    ) -> Draft:
        record = make_record()
        asked = msgspec.structs.replace(
            record.configuration, tools=tools, loads=loads, iterations=iterations, warmup=warmup, rounds=rounds
        )
        number = len(list(tmp_path.glob("*.ndjson")))
        return Draft.begin(tmp_path / f"{number}.ndjson", msgspec.structs.replace(record, configuration=asked))

    return make


def nothing(_: Call) -> None:
    """A listener that ignores the call."""


async def history(connect: Connect) -> list[str]:
    """The tools that were called so far, oldest first."""
    async with connected(connect, 1) as (client,):
        status = (await client.call("status", {"recent": 100})).structured
    return [call["tool"] for call in reversed(status["recent"])]


async def test_every_planned_call_is_made_and_recorded(connect: Connect, begin: Begin) -> None:
    """Every tool gets its calls, tools alternate, and each call has the daemon's metadata."""
    heard: list[Call] = []
    with begin("echo", "chat", rounds=3) as draft:
        matrix = Matrix({"echo": Case({"text": "a"}), "chat": Case({"prompt": "Hello"})})
        await collect([Side(draft, connect, matrix)], heard.append)
    assert [(call.tool_name, call.iteration) for call in heard] == [
        (tool, number) for number in (1, 2, 3) for tool in ("echo", "chat")
    ]
    assert draft.calls == heard
    chat = heard[1]
    assert (chat.status, chat.simulated) == ("success", True)
    assert chat.tokens is not None
    assert chat.timings is not None
    assert 0 < chat.timings.provider_ms < chat.timings.daemon_ms < chat.latency_ms


async def test_warm_up_calls_are_not_recorded(connect: Connect, begin: Begin) -> None:
    """Warm-up calls reach the daemon before the measured calls and are not in the draft."""
    with begin("echo", "version", warmup=2) as draft:
        await collect([Side(draft, connect, Matrix({"echo": Case({"text": "a"}), "version": Case()}))], nothing)
    assert (await history(connect))[:10] == ["echo", "echo", "version", "version", *["echo"] * 3, *["version"] * 3]
    assert len(draft.calls) == 6


async def test_error_answer_is_recorded_as_a_failure(connect: Connect, begin: Begin) -> None:
    """An answer with an error is recorded as a failure with its code, and the run continues."""
    with begin("echo", "version") as draft:
        await collect([Side(draft, connect, Matrix({"echo": Case({"no_such": 1}), "version": Case()}))], nothing)
    assert {(call.tool_name, call.status, call.error_code) for call in draft.calls} == {
        ("echo", "error", "VALIDATION_ERROR"),
        ("version", "success", None),
    }


async def test_failed_step_or_item_is_a_failure(connect: Connect, begin: Begin) -> None:
    """A pipeline that stopped and a batch with a failed item are failures, although they answer with a result."""
    refused, fine = "[[sim:status=400]]", "Hello"
    step = {"id": "one", "tool_name": "chat", "args": {"prompt": refused}}
    batch = {"tool_name": "chat", "items": [fine, refused], "args": {"prompt": "{{item}}"}}
    matrix = Matrix(
        {
            "execute_pipeline": Case({"steps": [step]}),
            "execute_batch": Case(batch),
            "execute_tool": Case({"tool_name": "execute_batch", "args": batch | {"items": [fine]}}),
        }
    )
    with begin(*matrix.tools, iterations=1) as draft:
        await collect([Side(draft, connect, matrix)], nothing)
    pipeline, batched, whole = draft.calls
    assert (pipeline.status, pipeline.error_code) == ("error", "PROVIDER_ERROR")
    assert str(pipeline.error).startswith("step 'one' failed: GLM")
    assert (batched.status, batched.error_code) == ("error", "PROVIDER_ERROR")
    assert str(batched.error).startswith("1 of 2 items failed; item 1: GLM")
    assert batched.tokens is not None
    assert (whole.status, whole.error) == ("success", None)


async def test_concurrency_is_kept(connect: Connect, begin: Begin) -> None:
    """With a concurrency of four, exactly four of eight calls start before the first one ends."""
    load = Load(concurrency=4)
    with begin("echo", loads=(load,), iterations=8) as draft:
        await collect([Side(draft, connect, Matrix({"echo": Case({"text": "a", "delay_ms": 250})}))], nothing)
    first_end = min(call.offset_s + call.latency_ms / 1000 for call in draft.calls)
    assert sum(call.offset_s < first_end for call in draft.calls) == 4
    assert {call.iteration for call in draft.calls} == set(range(1, 9))


async def test_rate_does_not_wait_for_answers(connect: Connect, begin: Begin) -> None:
    """With a rate, calls start at their scheduled times although none has ended, and their latency includes any delay
    of the start.
    """
    with begin("echo", loads=(Load(rate_per_s=50),), iterations=10) as draft:
        await collect([Side(draft, connect, Matrix({"echo": Case({"text": "a", "delay_ms": 500})}))], nothing)
    calls = sorted(draft.calls, key=lambda call: call.iteration)
    due = [call.offset_s - calls[0].offset_s for call in calls]
    assert due == pytest.approx([n / 50 for n in range(10)], abs=1e-5)
    assert all(call.latency_ms >= 500 + call.late_ms for call in calls)
    assert all(call.late_ms >= 0 for call in calls)


async def test_slow_answers_do_not_delay_a_rate(connect: Connect, begin: Begin) -> None:
    """With a rate, each call is due at its scheduled time, even if answers are slow."""
    loads = (Load(rate_per_s=200),)
    with begin("echo", loads=loads, iterations=40, rounds=rounds_for(40, loads)) as draft:
        await collect([Side(draft, connect, Matrix({"echo": Case({"text": "a", "delay_ms": 500})}))], nothing)
    calls = sorted(draft.calls, key=lambda call: call.iteration)
    assert [call.offset_s - calls[0].offset_s for call in calls] == pytest.approx(
        [n / 200 for n in range(40)], abs=1e-5
    )


async def test_recorded_calls_are_not_repeated(connect: Connect, begin: Begin, make_call: Callable[..., Call]) -> None:
    """If a draft already has calls, only the missing ones are made."""
    with begin("echo", "version", warmup=1) as draft:
        for number in (1, 2, 3):
            draft.add(make_call(tool_name="version", iteration=number))
        draft.add(make_call(iteration=2))
        await collect([Side(draft, connect, Matrix({"echo": Case({"text": "a"}), "version": Case()}))], nothing)
    assert [(call.tool_name, call.iteration) for call in draft.calls[4:]] == [("echo", 1), ("echo", 3)]
    assert "version" not in await history(connect)


async def test_needs_are_prepared_and_undone(connect: Connect, begin: Begin) -> None:
    """A tool's needs are prepared once before its calls, fill its arguments, and are undone at the end. These calls
    are not measured.
    """
    undo = Step("kimi_manage_files", {"operation": "delete", "file_id": "{{result.files[0].file_id}}"})
    matrix = Matrix(
        {"smart_file_download": Case({"file_id": "{{notes.files[0].file_id}}"}, needs=("notes",))},
        {"notes": Step("kimi_upload_files", {"files": ["notes.md"]}, undo)},
    )
    with begin("smart_file_download") as draft:
        await collect([Side(draft, connect, matrix)], nothing)
    assert [call.status for call in draft.calls] == ["success"] * 3
    assert await history(connect) == ["kimi_upload_files", *["smart_file_download"] * 3, "kimi_manage_files"]


async def test_uploads_are_deleted_again(connect: Connect, begin: Begin) -> None:
    """Each upload is deleted again, including those of warm-up calls, and only the uploads are measured."""
    undo = Step("kimi_manage_files", {"operation": "delete", "file_id": "{{result.files[0].file_id}}"})
    with begin("kimi_upload_files", warmup=1) as draft:
        matrix = Matrix({"kimi_upload_files": Case({"files": ["notes.md"]}, undo=undo)})
        await collect([Side(draft, connect, matrix)], nothing)
    assert [call.tool_name for call in draft.calls] == ["kimi_upload_files"] * 3
    async with connected(connect, 1) as (client,):
        assert (await client.call("kimi_manage_files", {"operation": "list"})).structured["files"] == []


async def test_templates_are_kept_without_needs(connect: Connect, begin: Begin) -> None:
    """If a tool has no needs, its arguments are sent unchanged, including braces."""
    with begin("echo") as draft:
        await collect([Side(draft, connect, Matrix({"echo": Case({"text": "{{item}}"})}))], nothing)
    assert [call.status for call in draft.calls] == ["success"] * 3


async def test_failed_preparation_ends_the_run(connect: Connect, begin: Begin) -> None:
    """If a need cannot be prepared, the run ends with an error that names it, and makes no call."""
    matrix = Matrix({"echo": Case(needs=("notes",))}, {"notes": Step("kimi_upload_files", {"files": ["gone.md"]})})
    with begin("echo") as draft, pytest.raises(CollectionError, match=r"needs\.notes"):
        await collect([Side(draft, connect, matrix)], nothing)
    assert draft.calls == []


async def test_two_sides_take_turns(connect: Connect, begin: Begin) -> None:
    """Two daemons are called in alternation, and the order changes every round."""
    order: list[str] = []
    with begin("version", rounds=3) as one, begin("version", rounds=3) as other:
        names = {id(one): "one", id(other): "other"}

        def noting(draft: Draft) -> Draft:
            add = draft.add

            def note(call: Call) -> None:
                order.append(names[id(draft)])
                add(call)

            draft.add = note  # type: ignore[method-assign] # to record which side it was
            return draft

        sides = [Side(noting(draft), connect, Matrix({"version": Case()})) for draft in (one, other)]
        await collect(sides, nothing)
    assert order == ["one", "other", "other", "one", "one", "other"]
    assert len(one.calls) == len(other.calls) == 3


async def test_unreachable_daemon_is_an_error(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    """If no daemon answers, the run ends before any call, with the client's error and advice how to start a daemon."""
    monkeypatch.setattr(client_link, "MAX_DELAY_S", 0.01)  # between the attempts
    with begin("echo") as draft:
        nobody = Side(draft, lambda: MCPWebSocketClient("127.0.0.1", 9), Matrix({"echo": Case()}))
        with pytest.raises(CollectionError, match=r"127\.0\.0\.1:9.*\(--simulate starts a daemon"):
            async with asyncio.timeout(60):
                await collect([nobody], nothing)


async def test_refused_client_is_not_advised_to_start_a_daemon(connect: Connect, begin: Begin) -> None:
    """If a daemon refuses the client, the error has the reason and does not advise to start another daemon."""
    with begin("echo") as draft:
        stranger = connect()
        refused = Side(draft, lambda: MCPWebSocketClient(stranger.url, token="wrong"), Matrix({"echo": Case()}))
        with pytest.raises(CollectionError, match="UNAUTHORIZED") as ended:
            await collect([refused], nothing)
    assert "--simulate" not in str(ended.value)


def test_concurrency_determines_the_number_of_connections() -> None:
    """There is one connection per eight concurrent calls, because a session runs eight at once. A rate has eight
    connections.
    """
    assert connections_for([ONE]) == 1
    assert connections_for([ONE, Load(concurrency=8)]) == 1
    assert connections_for([ONE, Load(concurrency=33)]) == 5
    assert connections_for([Load(rate_per_s=1)]) == 8
