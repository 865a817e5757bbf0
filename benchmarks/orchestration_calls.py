"""The cost of a pipeline of 20 steps compared with 20 calls, and the savings of shaping an answer of 1 MB."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from statistics import median
from typing import Any, Final

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from websockets.sync.client import ClientConnection, connect

from .servers import daemon

STEPS: Final = 20
ROUNDS: Final = 60
LARGE_ROUNDS: Final = 5
ROWS: Final = 8000
"""Rows of some 130 bytes: 1 MB."""
_HELLO: Final = {"op": "hello", "session_id": "benchmark"}
_ids = count(1)


@dataclass(frozen=True, slots=True)
class Timed:
    """``ms`` is the median of the rounds, ``answer`` the size of the last answer in bytes."""

    what: str
    ms: float
    answer: int


def measure() -> tuple[list[Timed], list[Timed]]:
    """The cost of 20 calls, and the size of shaped answers of 1 MB, over one connection to a separate daemon.

    Raises:
        RuntimeError: the daemon did not start, or a call failed.
    """
    with daemon() as server:
        server.settle()
        with connect(f"ws://127.0.0.1:{server.port}/", compression=None, max_size=None, proxy=None) as socket:
            socket.send(json.dumps(_HELLO))
            socket.recv()
            return _small_calls(socket), _large(socket)


def show(route: list[Timed], large: list[Timed], console: Console) -> None:
    """Print both tables."""
    _show(f"{STEPS} times echo", route, console, per=STEPS)
    _show("an answer of 1 MB", large, console)


def _call(socket: ClientConnection, name: str, **arguments: Any) -> int:
    """Call a tool. Returns the size of its answer in bytes."""
    request_id = next(_ids)
    socket.send(json.dumps({"op": "call_tool", "request_id": request_id, "name": name, "arguments": arguments}))
    while True:
        frame = socket.recv()
        answer = json.loads(frame)
        if answer["op"] == "call_tool_res" and answer["request_id"] == request_id:
            structured = answer.get("structured")
            if answer["error"] is not None or (isinstance(structured, dict) and structured.get("success") is False):
                raise RuntimeError(f"{name} failed: {answer}")
            return len(frame)


def _timed(cases: dict[str, Callable[[], int]], rounds: int) -> list[Timed]:
    """Runs all cases in turn, round by round."""
    seen: dict[str, list[float]] = {what: [] for what in cases}
    answers: dict[str, int] = {}
    for _ in range(rounds):
        for what, way in cases.items():
            began = time.perf_counter()
            answers[what] = way()
            seen[what].append((time.perf_counter() - began) * 1000)
    return [Timed(what, median(times), answers[what]) for what, times in seen.items()]


def _small_calls(socket: ClientConnection) -> list[Timed]:
    """20 calls of ``echo``: by the client, in a chain, concurrently, and in a batch."""
    chain = [{"id": "s0", "tool_name": "echo", "args": {"text": "x"}}]
    chain += [{"id": f"s{n}", "tool_name": "echo", "args": {"text": f"{{{{s{n - 1}}}}}"}} for n in range(1, STEPS)]
    steps = [{"id": f"s{n}", "tool_name": "echo", "args": {"text": "x"}} for n in range(STEPS)]
    cases: dict[str, Callable[[], int]] = {
        "calls, one after the other": lambda: sum(_call(socket, "echo", text="x") for _ in range(STEPS)),
        "a pipeline, a chain": lambda: _call(socket, "execute_pipeline", steps=chain),
        "a pipeline, side by side": lambda: _call(socket, "execute_pipeline", steps=steps),
        "a batch": lambda: _call(socket, "execute_batch", tool_name="echo", items=[{"text": "x"}] * STEPS),
    }
    return _timed(cases, ROUNDS)


def _large(socket: ClientConnection) -> list[Timed]:
    """Answers of 1 MB: whole and shaped."""
    rows = [
        {"id": number, "name": f"row {number}", "status": "open" if number % 100 == 0 else "done", "text": "x" * 80}
        for number in range(ROWS)
    ]
    step: dict[str, Any] = {"id": "rows", "tool_name": "echo", "args": {"value": "{{input.rows}}"}}

    def shaped(**options: Any) -> int:
        return _call(socket, "execute_pipeline", steps=[{**step, "options": options}], input={"rows": rows})

    cases: dict[str, Callable[[], int]] = {
        "echo": lambda: _call(socket, "echo", value=rows),
        "filter and two fields": lambda: shaped(filter="status = open", select_fields=["id", "name"]),
        "count": lambda: shaped(aggregate={"group_by": ["status"], "count": True}),
        "summary": lambda: shaped(return_mode="summary"),
    }
    return _timed(cases, LARGE_ROUNDS)


def _show(title: str, timed: list[Timed], console: Console, per: int | None = None) -> None:
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("", no_wrap=True)
    for heading in ("ms", *(["ms each"] if per else []), "bytes received", "relative"):
        table.add_column(heading, justify="right")
    for one in timed:
        each = [f"{one.ms / per:.2f}"] if per else []
        table.add_row(one.what, f"{one.ms:.1f}", *each, f"{one.answer:,}", f"{one.answer / timed[0].answer:.2%}")
    console.print(table)
