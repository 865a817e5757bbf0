"""``python -m tests.chaos.agent_runs``: runs of hosted agents, and a daemon that is killed while it writes the journal.

Each run is a detached call of an agent whose model follows a script with writes, reads of the time, and answers. The
daemon is killed at random commits and started again until all runs have ended. Then each has the answer of its script,
and each of its writes happened once, unless the model got `OUTCOME_UNKNOWN` for it.
"""

import argparse
import asyncio
import json
import os
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from toold.client import MCPWebSocketClient
from toold.protocol.error_codes import CallError

from .daemon import Daemon

AGENTS: Final = """
[agents.solo]
description = "One role."
prompt = "Work."
tools = ["sim_effect", "status", "echo"]

[agents.chain]
description = "One role after the other."
execution_type = "sequential"
roles = [
    { name = "a", prompt = "A.", tools = ["sim_effect", "status"] },
    { name = "b", prompt = "B.", tools = ["sim_effect"] },
]

[agents.team]
description = "Two roles at once."
execution_type = "parallel"
aggregator_role = "editor"
roles = [
    { name = "a", prompt = "A.", tools = ["sim_effect", "status"] },
    { name = "b", prompt = "B.", tools = ["sim_effect", "status"] },
    { name = "editor", prompt = "Edit.", tools = ["sim_effect", "status"] },
]

[agents.desk]
description = "A role that delegates."
execution_type = "coordinator"
coordinator_role = "lead"
roles = [
    { name = "lead", prompt = "Lead.", tools = ["sim_effect"] },
    { name = "clerk", prompt = "Do.", tools = ["sim_effect"] },
]

[agents.switch]
description = "A role that hands over."
execution_type = "hub-spoke"
hub_role = "hub"
roles = [
    { name = "hub", prompt = "Route.", tools = ["sim_effect"] },
    { name = "spoke", prompt = "Do.", tools = ["sim_effect"] },
]

[agents.coded]
description = "Code that does two things at once, and then lets a role work."
execution_type = "custom"
custom = "chaos"
prompt = "Work."
tools = ["sim_effect", "status", "echo"]
"""
CODE: Final = """
import asyncio

async def run(context):
    run_name = context.prompt.split()[0]

    async def write(name):
        branch = context.branch(name)
        await branch.call_tool("status")
        text = f"{run_name} {name} {await branch.now()} {branch.random.random()}"
        await branch.call_tool("sim_effect", {"text": text, "delay_ms": 100})

    await asyncio.gather(write("left"), write("right"))
    return (await context.run_role("main", context.prompt)).text
"""
"""The code of the agent ``coded``: its writes contain the time and random numbers."""
WRITE: Final = "sim_effect"
TIME: Final = "status"
"""A local tool whose answer differs each time: how long the daemon runs."""
MAX_COMMITS: Final = 60
"""A start is killed at one of its first commits."""
_RESULTS_S: Final = 300.0


@dataclass(frozen=True)
class Expected:
    """One run, and how it must end."""

    agent: str
    prompt: str
    answer: str
    turns: int
    writes: int


@dataclass
class Verdict:
    """What came out of all runs."""

    runs: int = 0
    kills: int = 0
    unknown: int = 0
    """Writes that were interrupted, as their models saw."""
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [f"{self.runs} runs, {self.kills} kills, {self.unknown} writes of unknown outcome", *self.problems]
        return "\n".join([*lines, "promises broken" if self.problems else "all promises kept"])


def _script(*turns: Mapping[str, Any]) -> str:
    return f"[[sim:script={json.dumps(turns)}]]"


def _calls(chance: random.Random, *wanted: tuple[str, Mapping[str, Any]]) -> dict[str, Any]:
    calls = [{"name": name, "arguments": arguments} for name, arguments in wanted]
    return {"calls": calls, "delay_s": round(chance.uniform(0, 0.3), 3)}


Maker = Callable[[str, random.Random], Expected]
"""Makes a run of an agent from its name."""


def expected_runs(count: int, seed: int, makers: Sequence[Maker]) -> list[Expected]:
    """The runs of a seed, of all agents in turn."""
    chance = random.Random(seed)
    return [makers[number % len(makers)](f"run{number}", chance) for number in range(count)]


def _work(run: str, chance: random.Random, answer: str) -> str:
    """A script of three turns with three writes."""

    def write(text: str) -> tuple[str, Mapping[str, Any]]:
        return WRITE, {"text": f"{run} {text}", "delay_ms": chance.choice((0, 0, 100))}

    return _script(
        _calls(chance, (TIME, {}), write("a")),
        _calls(chance, write("b"), write("c")),
        {"text": answer, "delay_s": 0.05},
    )


def solo_of(agent: str) -> Maker:
    """Runs of an agent with one role that makes three turns with three writes."""
    return lambda run, chance: Expected(agent, _work(run, chance, f"{run} done"), f"{run} done", 3, 3)


def _chain(run: str, chance: random.Random) -> Expected:
    return Expected("chain", _work(run, chance, _work(run, chance, f"{run} done")), f"{run} done", 6, 6)


def _team(run: str, chance: random.Random) -> Expected:
    return Expected("team", _work(run, chance, f"{run} done"), f"{run} done", 9, 9)


def _desk(run: str, chance: random.Random) -> Expected:
    task = {"prompt": _work(run, chance, "clerk done")}
    turns = (_calls(chance, ("delegate_to_clerk", task), (WRITE, {"text": f"{run} lead"})), {"text": f"{run} done"})
    return Expected("desk", _script(*turns), f"{run} done", 5, 4)


def _switch(run: str, chance: random.Random) -> Expected:
    turn = _calls(chance, ("transfer_to_spoke", {"prompt": _work(run, chance, f"{run} done")}))
    return Expected("switch", _script(turn), f"{run} done", 4, 3)


def _coded(run: str, chance: random.Random) -> Expected:
    return Expected("coded", f"{run} {_work(run, chance, f'{run} done')}", f"{run} done", 3, 5)


MAKERS: Final[Sequence[Maker]] = (solo_of("solo"), _chain, _team, _desk, _switch, _coded)


def _install(code: str, directory: Path) -> None:
    """Installs the code as the entry point ``chaos`` into a directory of packages."""
    info = directory / "chaos_agent-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: chaos-agent\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[toold.agents]\nchaos = chaos_agent:run\n")
    (directory / "chaos_agent.py").write_text(code)


async def run(
    directory: Path,
    *,
    runs: int,
    kills: int,
    seed: int,
    report: Callable[[str], None],
    makers: Sequence[Maker] = MAKERS,
    agents: str = AGENTS,
    packages: Sequence[Path] = (),
) -> Verdict:
    """Starts all runs, kills the daemon, waits for all answers, and judges them. ``packages``: directories of further
    installed packages.
    """
    chance = random.Random(f"kills {seed}")
    expected = expected_runs(runs, seed, makers)
    (directory / "toold.toml").write_text(agents)
    _install(CODE, directory / "packages")
    path = os.pathsep.join(map(str, (directory / "packages", *packages)))
    daemon = Daemon(directory, {"TOOLD_MAX_DETACHED": str(runs + 1), "PYTHONPATH": path})
    verdict = Verdict(runs)
    try:
        await daemon.start()
        async with MCPWebSocketClient(f"ws://127.0.0.1:{daemon.port}", token=daemon.token) as client:
            ids = []
            for item in expected:
                accepted = await client.call(item.agent, {"prompt": item.prompt, "detach": True})
                ids.append(accepted.structured["call_id"])
            await daemon.kill()
            for verdict.kills in range(1, kills + 1):
                daemon.kill_at_commit = chance.randrange(2, MAX_COMMITS) * chance.choice((1, -1))
                await daemon.start()
                if not await _killed(daemon, client, ids):
                    break
                report(f"killed at commit {daemon.kill_at_commit}")
            else:
                daemon.kill_at_commit = 0
                await daemon.start()
            answers = [await _answer(client, call_id) for call_id in ids]
        await daemon.stop()
    finally:
        await daemon.close()
    written = Counter((daemon.state / "sim_effect.log").read_text().splitlines())
    for number, (item, answer) in enumerate(zip(expected, answers, strict=True)):
        writes = {line: count for line, count in written.items() if line.startswith(f"run{number} ")}
        unknown, problem = judge(item, answer, writes)
        verdict.unknown += unknown
        verdict.problems += [f"run {number} ({item.agent}): {problem}"] if problem else []
    return verdict


async def _killed(daemon: Daemon, client: MCPWebSocketClient, ids: Sequence[str]) -> bool:
    """Waits until the daemon was killed; False if all runs ended before."""
    ended = asyncio.create_task(_all_ended(client, ids))
    died = asyncio.create_task(daemon.ended())
    await asyncio.wait((ended, died), return_when=asyncio.FIRST_COMPLETED)
    was_killed = died.done()
    for task in (ended, died):
        task.cancel()
    await asyncio.gather(ended, died, return_exceptions=True)
    return was_killed


async def _all_ended(client: MCPWebSocketClient, ids: Sequence[str]) -> None:
    for call_id in ids:
        await _answer(client, call_id)


async def _answer(client: MCPWebSocketClient, call_id: str) -> dict[str, Any]:
    """The answer of a detached call, once it has ended."""
    async with asyncio.timeout(_RESULTS_S):
        while True:
            try:
                answer: dict[str, Any] = (await client.call("call_result", {"call_id": call_id})).structured
            except CallError as error:
                if not error.retryable:
                    return {"error": {"code": error.code.value, "message": error.message}}
            else:
                if "result" in answer or "error" in answer:
                    return answer
            await asyncio.sleep(0.1)


def judge(expected: Expected, answer: Mapping[str, Any], written: Mapping[str, int]) -> tuple[int, str]:
    """How many writes have an unknown outcome, and what is wrong; an empty text if nothing is."""
    result = answer.get("result")
    if not isinstance(result, dict):
        return 0, f"it has no result: {json.dumps(answer)[:500]}"
    writes = [call["outcome"] for call in result["calls"] if call["tool"] == WRITE]
    unknown, ok = writes.count("OUTCOME_UNKNOWN"), writes.count("ok")
    total = sum(written.values())
    if result["answer"] != expected.answer:
        return unknown, f"it answered {result['answer'][:200]!r}, not {expected.answer!r}"
    if result["turns"] != expected.turns:
        return unknown, f"it made {result['turns']} turns, not {expected.turns}"
    if len(writes) != expected.writes or unknown + ok != expected.writes:
        return unknown, f"its {expected.writes} writes ended {Counter(writes)}"
    if not ok <= total <= ok + unknown:
        return unknown, f"{ok} writes succeeded and {unknown} are unknown, but {total} happened: {dict(written)}"
    return unknown, ""


def main() -> int:
    """Run and print the verdict."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.agent_runs", description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=200, help="number of runs (%(default)s)")
    parser.add_argument("--kills", type=int, default=40, help="kill the daemon at most so often (%(default)s)")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6), help="random by default")
    arguments = parser.parse_args()
    print(f"{arguments.runs} runs, seed {arguments.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="toold-agent-runs-") as directory:
        verdict = asyncio.run(
            run(
                Path(directory),
                runs=arguments.runs,
                kills=arguments.kills,
                seed=arguments.seed,
                report=lambda line: print(line, flush=True),
            )
        )
    print(verdict)
    return 1 if verdict.problems else 0


if __name__ == "__main__":
    sys.exit(main())
