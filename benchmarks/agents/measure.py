"""The measurement: all programs run, and begin the same runs in turn, round by round."""

import asyncio
import itertools
import json
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import quantiles
from typing import Final, TypeAlias
from urllib.request import urlopen

import msgspec
import psutil
from toold import __version__
from toold.client import MCPWebSocketClient

from ..load import cpu_s
from ..servers import Server, agents_of, daemon, vendor_stand_in
from .flow import AGENTS, ANSWER, DESCRIPTION, INSTRUCTIONS, MODEL, RUNS, TOOLS, TURNS
from .run_rounds import round_of
from .stand_in_vendor import VendorTurn

ROUNDS: Final = 3
_ROOT: Final = Path(__file__).parents[2]
_SAMPLE_S: Final = 0.05
TOOLD: Final = "toold"
ADK: Final = "google-adk"
PYDANTIC_AI: Final = "pydantic-ai"

_OUT_OF_THE_WAY: Final = {
    "TOOLD_MAX_RUNNING": "1024",
    "TOOLD_MAX_WAITING": "4096",
    "TOOLD_MAX_RUNNING_PER_SESSION": "1024",
    "TOOLD_MAX_ACCEPTED_PER_SESSION": "1024",
    "TOOLD_MAX_ORCHESTRATIONS_PER_SESSION": "1024",
}
"""The daemon's limits, so that no run waits for a permit."""

RunTimes: TypeAlias = tuple[str, float, float, str]
"""A run's name, when it began and ended, and its answer or error."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program with 200 agents."""

    name: str
    about: str
    pid: int
    loaded_mib: float
    """Its resident memory once the agents are loaded, before the first run."""
    begin: Callable[[str], list[RunTimes]]
    """Makes a round; the runs' names begin with this."""


class Round(msgspec.Struct, frozen=True):
    """A round of one program; times in ms."""

    cpu_ms: float
    """CPU time of the program per turn."""
    p50_ms: float
    """What a turn took beyond the model's time: from the model's answer, or the begin of the run, to the next
    request, or the end of the run."""
    p99_ms: float
    seconds: float
    """From the begin of the first run to the end of the last."""
    peak_mib: float
    """The most resident memory during the round."""


Seen: TypeAlias = Mapping[str, Sequence[Round]]


class FailedRunsError(RuntimeError):
    """Some runs of a round had a wrong answer or wrong turns, so the round is not comparable."""


def turn_times(runs: Sequence[RunTimes], turns: Sequence[VendorTurn]) -> list[float]:
    """What each turn of the runs took beyond the model's time, in seconds. The last turn of a run includes its end.

    Raises:
        FailedRunsError: a run had another answer or another number of turns than the flow.
    """
    of_run: dict[str, list[VendorTurn]] = {}
    for turn in sorted(turns, key=lambda each: each.arrived):
        of_run.setdefault(turn.run, []).append(turn)
    times: list[float] = []
    for name, began, ended, answer in runs:
        asked = of_run.get(name, [])
        if answer != ANSWER.format(order=name) or len(asked) != TURNS:
            raise FailedRunsError(f"run {name} made {len(asked)} turns and answered: {answer[:300]}")
        waits = [turn.arrived - before for turn, before in zip(asked, [began, *_answers(asked)], strict=False)]
        waits[-1] += ended - asked[-1].answered
        times += waits
    return times


def _answers(turns: Sequence[VendorTurn]) -> list[float]:
    return [turn.answered for turn in turns]


def measure(
    programs: Sequence[Program], turns_since: Callable[[], list[VendorTurn]], say: Callable[[str], None]
) -> dict[str, list[Round]]:
    """Runs all rounds, after one that is not counted: imports, first connections.

    Raises:
        FailedRunsError: a run failed.
    """
    seen: dict[str, list[Round]] = {program.name: [] for program in programs}
    for number in range(ROUNDS + 1):
        for program in programs if number % 2 == 0 else reversed(programs):  # alternate the order
            say(f"round {number} of {ROUNDS}: {program.name}")
            figures = _round(program, f"{number}", turns_since)
            if number:
                seen[program.name].append(figures)
    return seen


def _round(program: Program, prefix: str, turns_since: Callable[[], list[VendorTurn]]) -> Round:
    process = psutil.Process(program.pid)
    with _peak_memory(process) as peak:
        before = cpu_s(process)
        runs = program.begin(f"{program.name}-{prefix}")
        used = cpu_s(process) - before
    times = turn_times(runs, turns_since())
    percentiles = quantiles(times, n=100)
    return Round(
        used / (RUNS * TURNS) * 1000,
        percentiles[49] * 1000,
        percentiles[98] * 1000,
        max(ended for _, _, ended, _ in runs) - min(began for _, began, _, _ in runs),
        peak(),
    )


@contextmanager
def _peak_memory(process: psutil.Process) -> Iterator[Callable[[], float]]:
    """Samples the memory during the block; the function returns the highest, in MiB."""
    over, samples = threading.Event(), [_memory_mib(process)]

    def sample() -> None:
        while not over.wait(_SAMPLE_S):
            samples.append(_memory_mib(process))

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield lambda: max(samples)
    finally:
        over.set()
        thread.join()


def _memory_mib(process: psutil.Process) -> float:
    return float(process.memory_info().rss / 2**20)


@contextmanager
def programs() -> Iterator[tuple[list[Program], Callable[[], list[VendorTurn]]]]:
    """Starts the vendor and all programs; the function returns the vendor's turns since its last call.

    Raises:
        RuntimeError: one did not start.
    """
    with ExitStack() as stack:
        port = stack.enter_context(vendor_stand_in())

        def turns_since() -> list[VendorTurn]:
            with urlopen(f"http://127.0.0.1:{port}/turns", timeout=10) as response:
                return msgspec.json.decode(response.read(), type=list[VendorTurn])

        adk = stack.enter_context(agents_of("adk", "adk_runs", port))
        pydantic_ai = stack.enter_context(agents_of("pydantic-ai", "pydantic_ai_runs", port))
        yield (
            [
                stack.enter_context(_toold(port)),
                _peer(ADK, adk),
                _peer(PYDANTIC_AI, pydantic_ai),
            ],
            turns_since,
        )


def _peer(name: str, process: "subprocess.Popen[str]") -> Program:
    """A program in another environment, once it has created its agents."""
    asked, answered = process.stdin, process.stdout
    assert asked is not None
    assert answered is not None
    about = answered.readline().strip()
    if not about:
        raise RuntimeError(f"the agents of {name} did not start; what they said is on stderr")

    def begin(prefix: str) -> list[RunTimes]:
        asked.write(f"{prefix}\n")
        asked.flush()
        line = answered.readline()
        if not line:
            raise RuntimeError(f"the agents of {name} ended; what they said is on stderr")
        return [(run, began, ended, answer) for run, began, ended, answer in json.loads(line)]

    return Program(name, about, process.pid, _memory_mib(psutil.Process(process.pid)), begin)


@contextmanager
def _toold(vendor_port: int) -> Iterator[Program]:
    """The daemon with the agents, and a client over WebSocket in this process."""
    with tempfile.TemporaryDirectory(prefix="toold-bench-tools-") as directory:
        info = Path(directory) / "shop_tools-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shop-tools\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text("[toold.tools]\nshop = benchmarks.agents.toold_tools\n")
        packages = f"{directory}:{_ROOT}"
        with (
            daemon(TOOLD, (), config=configuration(vendor_port), PYTHONPATH=packages, **_OUT_OF_THE_WAY) as server,
            asyncio.Runner() as runner,
        ):
            server.settle()
            client = runner.run(_connected(server))
            about = f"toold {__version__}, openai {version('openai')}, journal and audit on"
            loaded = _memory_mib(psutil.Process(server.process.pid))

            async def ask(number: int, question: str) -> str:
                result = await client.call(f"agent{number}", {"prompt": question})
                return str(result.structured["answer"])

            yield Program(TOOLD, about, server.process.pid, loaded, lambda prefix: runner.run(round_of(prefix, ask)))
            runner.run(client.disconnect())


async def _connected(server: Server) -> MCPWebSocketClient:
    """A client without streaming: the other programs do not stream either."""
    client = MCPWebSocketClient(f"ws://127.0.0.1:{server.port}", features=("ack", "resume", "going_away"))
    await client.ensure_connected()
    return client


def configuration(vendor_port: int) -> str:
    """The toold.toml with the agents and their vendor."""
    tools = json.dumps([function.__name__ for function in TOOLS])
    vendor = (
        f'[providers.shop]\nbase_url = "http://127.0.0.1:{vendor_port}/v1"\napi_key = "none"\nmax_in_flight = {RUNS}\n'
    )
    agent = f'description = {json.dumps(DESCRIPTION)}\nprompt = {json.dumps(INSTRUCTIONS)}\nmodel = "shop/{MODEL}"\n'
    tables = (f"[agents.agent{number}]\n{agent}tools = {tools}\n" for number in range(AGENTS))
    return "\n".join(itertools.chain([vendor], tables))
