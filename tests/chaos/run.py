"""A fault run, from its first call to its verdict."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from tests.full_disk import largest_file

from .callers import HEARTBEAT_S, KINDS, AggressiveCaller, Caller, CallSpec, Connect, Kind, call_specs, shortened_times
from .daemon import Daemon
from .evidence import LONGEST_TURN_S, audit_rows, effect_lines, turns, unpersisted, unsent
from .hostile_peers import PEERS, attack
from .memory import MIB, MemoryWatch
from .memory import SETTINGS as MEMORY_SETTINGS
from .project import Project
from .proxy import Proxy, draw
from .tally import Call, Evidence, Tally, tally

IN_FLIGHT: Final = 4
"""Concurrent calls of one client."""
_FINAL_ANSWERS_S: Final = 30.0
"""After the last fault, a call that is not answered within this counts as lost."""
_SENDING_S: Final = 120.0
"""The limit for sending the remaining rows to PostgreSQL after the last answer."""
_REPORT_INTERVAL_S: Final = 10.0
_CLOCK_JUMP_S: Final = 9 * 86400.0
"""Longer than anything that the daemon stores for a limited time."""
_SPACE_BYTES: Final = 64 * 1024
"""On a full disk, what the logs may still grow; the database cannot be written."""

_HOSTILE_SETTINGS: Final = {**MEMORY_SETTINGS, "TOOLD_WARM_UP": "true"}
"""With the SDKs loaded, completions do not delay the event loop, and the memory before is that of a daemon in use."""

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Scale:
    """The size of a run."""

    calls: int
    """The number of calls with an effect."""
    clients: int
    seed: int
    limit_s: float
    """No call starts after this."""
    between: tuple[int, int] = (60, 160)
    """The range of answers between two stops of the daemon, drawn uniformly."""
    hostile: bool = True
    """Whether hostile peers take part. They slow the run."""


@dataclass(slots=True)
class Course:
    """The progress of a run."""

    to_write: int
    """The number of calls with an effect still to make; all clients draw from it."""
    began: float = field(default_factory=time.monotonic)
    calls: list[Call] = field(default_factory=list)
    answered: int = 0
    over: bool = False
    happened: Counter[str] = field(default_factory=Counter)
    disk: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while the disk is full. A daemon that is killed then may lose what it could not write, as it says."""
    _moved: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    def count(self) -> None:
        self.answered += 1
        self._moved.set()

    def end(self) -> None:
        """Start no further call and no further fault."""
        self.over = True
        self._moved.set()

    async def wait_for_answers(self, answers: int) -> bool:
        """Wait for this many further answers. Returns False if the run ends first."""
        until = self.answered + answers
        while self.answered < until and not self.over:
            self._moved.clear()
            await self._moved.wait()
        return not self.over


@dataclass(frozen=True, slots=True)
class Client:
    """A client of a run, and its calls."""

    name: str
    connected: Connect
    token: str
    todo: Iterator[CallSpec]


async def run(directory: Path, scale: Scale, project: Project | None = None, say: Say = lambda _: None) -> Tally:
    """Make the calls, inject the faults, and judge the outcome.

    Raises:
        DaemonError: the daemon did not restart, or did not stop cleanly.
    """
    settings = {
        "TOOLD_GRACE_PERIOD_S": "3",
        "TOOLD_PING_INTERVAL_S": str(HEARTBEAT_S),
        "TOOLD_PING_TIMEOUT_S": str(HEARTBEAT_S),
        "TOOLD_MAX_RUNNING_PER_SESSION": str(IN_FLIGHT - 1),  # so that calls wait, and are cancelled while they wait
        # Longer than all jumps of the clock together: the rows are the evidence.
        "TOOLD_AUDIT_KEEP_DAYS": "100000",
        **(_HOSTILE_SETTINGS if scale.hostile else {}),
        **(project.settings if project else {}),
    }
    daemon, course = Daemon(directory, settings), Course(scale.calls)
    memory = MemoryWatch(daemon)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(daemon.close)
        await daemon.start()
        tokens = [daemon.token, await daemon.create_token("second")]
        hostile_token = await daemon.create_token("hostile")
        if scale.hostile:
            await memory.begin()
        proxy = await stack.enter_async_context(Proxy(lambda: [daemon.port], partial(draw, scale.seed)))
        faults = [_stop_repeatedly(scale, course, daemon), _fill_disk_repeatedly(scale, course, daemon)]
        if project:
            faults.append(_stop_backends_repeatedly(scale, course, project))
        if scale.hostile:
            faults.append(_attack(scale, course, daemon, hostile_token))
        watchers = (memory.watch(), report_progress(course, proxy, say))
        tasks = [asyncio.create_task(each) for each in (*faults, *watchers)]
        # The tasks end before the daemon is closed; otherwise they would start it again.
        stack.push_async_callback(end_all, tasks)
        unexpected = await make_calls(scale, course, proxy, tokens, tasks[: len(faults)])
        if scale.hostile:
            await memory.end()
        await daemon.stop()
        remote_ids = await _all_sent(daemon, project, say) if project else None
    log = daemon.logged()
    tracebacks, delays = log.count("Traceback"), turns(log)
    evidence = Evidence(
        effect_lines(daemon.state), audit_rows(daemon.state), remote_ids, tracebacks, unpersisted=unpersisted(log)
    )
    outcome = tally(course.calls, evidence)
    breaches = {
        **outcome.breaches,
        "frames that answer no call": unexpected,
        "memory": memory.breaches if scale.hostile else [],
        "turns of the event loop that delayed everyone": [f"{turn:g} s" for turn in delays if turn > LONGEST_TURN_S],
    }
    figures = {
        **outcome.figures,
        **damage(course, proxy),
        **_memory(memory),
        "longest logged turn": f"{max(delays, default=0):g} s",
    }
    return Tally(figures, breaches)


async def make_calls(
    scale: Scale,
    course: Course,
    proxy: Proxy,
    tokens: Sequence[str],
    faults: Sequence[asyncio.Task[None]],
    kinds: Sequence[Kind] = KINDS,
    more: Sequence[Client] = (),
) -> Sequence[str]:
    """Make all calls and wait for their answers. Returns frames that aggressive clients got and that answer no call.
    ``more`` clients make calls as long as there are some to make.

    The faults end with the last call or at the time limit; afterwards everything that they stopped runs again.
    """
    async with AsyncExitStack() as stack:
        stack.enter_context(shortened_times())
        callers: list[Caller] = []
        works: list[asyncio.Task[None]] = []
        for client in (*more, *_clients(scale, tokens, kinds)):
            caller = await stack.enter_async_context(client.connected(proxy.port, client.token, client.name))
            callers.append(caller)
            works += [asyncio.create_task(_work(caller, client.todo, course)) for _ in range(IN_FLIGHT)]
        stack.push_async_callback(end_all, works)
        all_made = asyncio.create_task(asyncio.wait(works))
        # A fault task that ends before the run has failed.
        await asyncio.wait(
            [all_made, *faults], timeout=scale.limit_s - course.seconds, return_when=asyncio.FIRST_COMPLETED
        )
        course.end()
        await asyncio.gather(*faults)
        proxy.calm_down()
        await asyncio.wait([all_made], timeout=_FINAL_ANSWERS_S)
        for task in works:
            if task.done():
                task.result()
    for call in course.calls:
        if not call.answers and call.lost is None and not call.given_up:
            call.lost = f"no answer within {_FINAL_ANSWERS_S:g} s after the last fault"
    return [frame for caller in callers if isinstance(caller, AggressiveCaller) for frame in caller.unexpected]


def _clients(scale: Scale, tokens: Sequence[str], kinds: Sequence[Kind]) -> Iterator[Client]:
    for number in range(scale.clients):
        kind, connected = kinds[number % len(kinds)]
        name = f"{kind}-{number}"
        yield Client(name, connected, tokens[number // len(kinds) % len(tokens)], call_specs(name, scale.seed))


async def _work(caller: Caller, todo: Iterator[CallSpec], course: Course) -> None:
    for call_spec in todo:
        if course.over or not course.to_write:
            return
        course.to_write -= call_spec.drawn
        call = Call(call_spec.id, call_spec.tool, asked_at=time.monotonic())
        course.calls.append(call)
        await caller.make(call_spec, call)
        course.count()
        if call.answers and call.answers[0].executed == "no":
            await asyncio.sleep(call_spec.pause_s)


async def _stop_repeatedly(scale: Scale, course: Course, daemon: Daemon) -> None:
    chance = random.Random(f"{scale.seed} ends")
    while await course.wait_for_answers(chance.randrange(*scale.between)):
        await asyncio.sleep(chance.uniform(0, 0.05))
        async with course.disk:
            if chance.random() < 0.75:
                await daemon.kill()
                course.happened["daemon killed"] += 1
            else:
                await daemon.stop()
                course.happened["daemon drained"] += 1
            await asyncio.sleep(chance.choice([0, 0, chance.uniform(0, 1.5)]))
            if chance.random() < 0.2:
                daemon.clock_shift_s += chance.choice([_CLOCK_JUMP_S, -3600.0])
                course.happened["clock jumped"] += 1
            await daemon.start()


async def _fill_disk_repeatedly(scale: Scale, course: Course, daemon: Daemon) -> None:
    """Let the daemon write nothing but its logs for a moment, as a full disk would."""
    chance = random.Random(f"{scale.seed} disk")
    while await course.wait_for_answers(chance.randrange(*scale.between)):
        size = max(path.stat().st_size for path in daemon.logs if path.exists()) + _SPACE_BYTES
        async with course.disk:
            with suppress(ProcessLookupError), largest_file(size, daemon.pid):
                course.happened["disk filled"] += 1
                await asyncio.sleep(chance.uniform(0.2, 1.0))
            await daemon.until_writing()


async def _attack(scale: Scale, course: Course, daemon: Daemon, token: str) -> None:
    """Run hostile peers until the fault run ends. They are a separate principal: what they send must not displace the
    stored answers of the others.
    """
    attacks = [asyncio.create_task(attack(name, daemon.port, token, scale.seed, course.happened)) for name in PEERS]
    try:
        while await course.wait_for_answers(1):
            pass
    finally:
        await end_all(attacks)


async def _stop_backends_repeatedly(scale: Scale, course: Course, project: Project) -> None:
    chance = random.Random(f"{scale.seed} stops")
    while await course.wait_for_answers(chance.randrange(*scale.between)):
        name = chance.choice(["PostgREST", "PostgreSQL"])
        part = project.postgrest if name == "PostgREST" else project.cluster
        await asyncio.to_thread(part.stop)
        course.happened[f"{name} stopped"] += 1
        await course.wait_for_answers(chance.randrange(*scale.between))
        await asyncio.to_thread(part.start)


async def _all_sent(daemon: Daemon, project: Project, say: Say) -> Sequence[str]:
    """Restart the daemon, which sends the remaining rows immediately. Returns the ids that arrived."""
    say(f"{unsent(daemon.state)} rows left to send")
    await daemon.start()
    give_up = time.monotonic() + _SENDING_S
    while unsent(daemon.state) and time.monotonic() < give_up:
        await asyncio.sleep(0.1)
    await daemon.stop()
    return await asyncio.to_thread(project.call_ids)


async def report_progress(course: Course, proxy: Proxy, say: Say) -> None:
    while True:
        await asyncio.sleep(_REPORT_INTERVAL_S)
        ends = course.happened["daemon killed"] + course.happened["daemon drained"]
        breaks = sum(proxy.broken.values())
        damage = f"{ends} daemon stops, {breaks} broken connections"
        say(f"{course.seconds:4.0f} s: {course.answered} calls answered, {damage}")


async def end_all(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _memory(memory: MemoryWatch) -> dict[str, str]:
    amounts = {"before": memory.before, "peak": memory.peak, "after": memory.after}
    return {f"memory, {name}": f"{amount // MIB} MiB" for name, amount in amounts.items() if amount}


def damage(course: Course, proxy: Proxy) -> dict[str, int | str]:
    return {
        "connections": proxy.connections,
        "broken by the proxy": sum(proxy.broken.values()),
        **{f"  {fault}": number for fault, number in sorted(proxy.broken.items())},
        **{name: course.happened[name] for name in sorted(course.happened)},
        "time": f"{course.seconds:.0f} s",
    }
