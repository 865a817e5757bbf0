"""``python -m benchmarks.code_mode``: one task as single calls and as one program; takes a minute.

The task: ask the three largest models of each vendor, and keep two fields of each answer. With single calls the client
lists the models, asks six times and selects the fields itself; with a program it makes one call. Rounds of both kinds
alternate over one connection to a separate daemon, whose simulated vendors answer with a delay.
"""

import json
import signal
import sys
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

ROUNDS: Final = 15
ASKED: Final = 3
"""The number of models per vendor."""
ANSWER_S: Final = 0.2
"""The simulated vendor's latency."""
_PROMPT: Final = f"Say in one word what you are for. [[sim:delay={ANSWER_S}]]"
_ids = count(1)
_HELLO: Final = {"op": "hello", "session_id": "benchmark"}

PROGRAM: Final = f"""\
import asyncio

models = (await tools.listmodels())["models"]
by_vendor = {{}}
for model in sorted(models, key=lambda m: m["context_window"], reverse=True):
    by_vendor.setdefault(model["provider"], []).append(model["id"])
chosen = [name for names in by_vendor.values() for name in names[:{ASKED}]]
answers = await asyncio.gather(*[tools.chat(prompt={_PROMPT!r}, model=name) for name in chosen])
return [{{"model": name, "chars": len(str(answer))}} for name, answer in zip(chosen, answers)]
"""


@dataclass
class Wire:
    """A connection that counts its frames."""

    socket: ClientConnection
    trips: int = 0
    """Round trips: how often the client sent a request and waited for the answer."""
    received: int = 0
    """Received bytes."""

    def ask(self, *calls: tuple[str, dict[str, Any]]) -> list[Any]:
        """Call tools concurrently. Returns the data of their answers, or the text if an answer has no data.

        Raises:
            RuntimeError: one failed.
        """
        waiting: dict[int, int] = {}
        for place, (name, arguments) in enumerate(calls):
            request_id = next(_ids)
            waiting[request_id] = place
            frame = {"op": "call_tool", "request_id": request_id, "name": name, "arguments": arguments}
            self.socket.send(json.dumps(frame))
        self.trips += 1
        answers: list[Any] = [None] * len(calls)
        while waiting:
            data = self.socket.recv()
            self.received += len(data)
            frame = json.loads(data)
            if frame["op"] != "call_tool_res":
                continue
            if frame["error"] is not None:
                raise RuntimeError(f"a call failed: {frame['error']}")
            text = "\n".join(block["text"] for block in frame["outputs"])
            answers[waiting.pop(frame["request_id"])] = frame.get("structured", text)
        return answers


def classic(wire: Wire) -> list[dict[str, Any]]:
    """One call at a time, as a model without code mode."""
    chosen = _chosen(wire.ask(("listmodels", {}))[0])
    return _told(chosen, [wire.ask(_question(name))[0] for name in chosen])


def side_by_side(wire: Wire) -> list[dict[str, Any]]:
    """Concurrent calls by the client."""
    chosen = _chosen(wire.ask(("listmodels", {}))[0])
    return _told(chosen, wire.ask(*map(_question, chosen)))


def _chosen(listed: Any) -> list[str]:
    by_vendor: dict[str, list[str]] = {}
    for model in sorted(listed["models"], key=lambda model: model["context_window"], reverse=True):
        by_vendor.setdefault(model["provider"], []).append(model["id"])
    return [name for names in by_vendor.values() for name in names[:ASKED]]


def _question(model: str) -> tuple[str, dict[str, Any]]:
    return "chat", {"prompt": _PROMPT, "model": model}


def _told(chosen: list[str], answers: list[Any]) -> list[dict[str, Any]]:
    return [{"model": name, "chars": len(str(answer))} for name, answer in zip(chosen, answers, strict=True)]


def program(wire: Wire) -> list[dict[str, Any]]:
    """One program."""
    (answer,) = wire.ask(("execute_code", {"code": PROGRAM}))
    value: list[dict[str, Any]] = answer["value"]
    return value


@dataclass(frozen=True, slots=True)
class Timed:
    """The medians of the rounds."""

    what: str
    ms: float
    trips: int
    received: int


WAYS: Final[dict[str, Callable[[Wire], list[dict[str, Any]]]]] = {
    "calls, one after the other": classic,
    "calls, side by side": side_by_side,
    "one program": program,
}


def measure() -> list[Timed]:
    """Runs all ways in turn, round by round; the first round is not counted.

    Raises:
        RuntimeError: the daemon did not start, a call failed, or two ways came to different results.
    """
    with daemon() as server:
        server.settle()
        with connect(f"ws://127.0.0.1:{server.port}/", compression=None, max_size=None, proxy=None) as socket:
            socket.send(json.dumps(_HELLO))
            socket.recv()
            seen: dict[str, list[tuple[float, int, int]]] = {what: [] for what in WAYS}
            for _ in range(ROUNDS + 1):
                results = []
                for what, way in WAYS.items():
                    wire = Wire(socket)
                    began = time.perf_counter()
                    results.append([one["model"] for one in way(wire)])
                    seen[what].append(((time.perf_counter() - began) * 1000, wire.trips, wire.received))
                if any(result != results[0] for result in results):
                    raise RuntimeError(f"the ways came to different results: {results}")
    return [Timed(what, *(median(values) for values in zip(*rounds[1:], strict=True))) for what, rounds in seen.items()]


def show(timed: list[Timed], console: Console) -> None:
    """Print the table."""
    title = f"ask {2 * ASKED} models that take {ANSWER_S:g} s each; medians of {ROUNDS} rounds"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("", no_wrap=True)
    for heading in ("ms", "round trips", "bytes received", "relative"):
        table.add_column(heading, justify="right")
    for one in timed:
        share = one.received / timed[0].received
        table.add_row(one.what, f"{one.ms:.1f}", f"{one.trips:g}", f"{one.received:,.0f}", f"{share:.1%}")
    console.print(table)


def main() -> int:
    """Measure and print."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends the started processes on the way out
    console = Console()
    try:
        with console.status("measuring"):
            timed = measure()
    except RuntimeError as error:
        console.print(f"not measured: {error}", markup=False, soft_wrap=True)
        return 1
    show(timed, console)
    return 0


if __name__ == "__main__":
    sys.exit(main())
