"""A fault run from its first call to its tally."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from .callers import HEARTBEAT_S, KINDS, BluntCaller, Caller, Wish, impatient, wishes
from .daemon import Daemon
from .evidence import audit_rows, effect_lines, unsent
from .project import Project
from .proxy import Proxy, draw
from .tally import WRITES, Call, Evidence, Tally, tally

IN_FLIGHT: Final = 4
"""Calls that one client makes at once."""
_PAUSE_S: Final = 0.3
_LAST_WORDS_S: Final = 30.0
"""Once the faults are over, every call is answered within this, or counts as lost."""
_SENDING_S: Final = 120.0
"""For the rows that are still on their way to PostgreSQL when all calls are answered."""
_TELL_S: Final = 10.0

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Scale:
    """How large a run is."""

    calls: int
    """With an effect, in all."""
    clients: int
    seed: int
    limit_s: float
    """No call is begun after this."""
    between: tuple[int, int] = (60, 160)
    """So many calls are answered between two ends of the daemon, drawn evenly."""


@dataclass(slots=True)
class Course:
    """A run under way: how far it is, and who waits for how much of it."""

    to_write: int
    """Calls with an effect that are still to be made, by whichever client is first."""
    began: float = field(default_factory=time.monotonic)
    calls: list[Call] = field(default_factory=list)
    answered: int = 0
    over: bool = False
    happened: Counter[str] = field(default_factory=Counter)
    _moved: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    def count(self) -> None:
        self.answered += 1
        self._moved.set()

    def end(self) -> None:
        """No call is begun any more, and no fault."""
        self.over = True
        self._moved.set()

    async def goes_on(self, answers: int) -> bool:
        """Wait until so many more calls are answered. False where the run is over before."""
        until = self.answered + answers
        while self.answered < until and not self.over:
            self._moved.clear()
            await self._moved.wait()
        return not self.over


async def run(directory: Path, scale: Scale, project: Project | None = None, say: Say = lambda _: None) -> Tally:
    """Make the calls, do the damage, and hold the outcome against the promises.

    Raises:
        DaemonError: the daemon did not start again, or did not stop well.
    """
    settings = {
        "TOOLD_GRACE_PERIOD_S": "3",
        "TOOLD_PING_INTERVAL_S": str(HEARTBEAT_S),
        "TOOLD_PING_TIMEOUT_S": str(HEARTBEAT_S),
        **(project.settings if project else {}),
    }
    daemon, course = Daemon(directory, settings), Course(scale.calls)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(daemon.close)
        await daemon.start()
        proxy = await stack.enter_async_context(Proxy(daemon.port, partial(draw, scale.seed)))
        troubles = [_end_again_and_again(scale, course, daemon)]
        if project:
            troubles.append(_stop_and_start(scale, course, project))
        tasks = [asyncio.create_task(each) for each in (*troubles, _tell(course, proxy, say))]
        # Before the daemon is closed for good, or it would be started once more.
        stack.push_async_callback(_end_all, tasks)
        strange = await _make_calls(scale, course, proxy, daemon, tasks[:-1])
        await daemon.stop()
        remote_ids = await _all_sent(daemon, project, say) if project else None
    tracebacks = daemon.logged().count("Traceback")
    outcome = tally(
        course.calls, Evidence(effect_lines(daemon.state), audit_rows(daemon.state), remote_ids, tracebacks)
    )
    breaches = {**outcome.breaches, "frames that answer nothing": strange}
    return Tally({**outcome.figures, **_damage(course, proxy)}, breaches)


async def _make_calls(
    scale: Scale, course: Course, proxy: Proxy, daemon: Daemon, troubles: Sequence[asyncio.Task[None]]
) -> Sequence[str]:
    """All calls, to their answers. Returns what blunt clients were told that answers nothing.

    The faults end with the last call or the time; what they stopped is running then.
    """
    async with AsyncExitStack() as stack:
        stack.enter_context(impatient())
        callers: list[Caller] = []
        works: list[asyncio.Task[None]] = []
        for number in range(scale.clients):
            kind, connected = KINDS[number % len(KINDS)]
            name = f"{kind}-{number}"
            caller = await stack.enter_async_context(connected(proxy.port, daemon.token, name))
            callers.append(caller)
            todo = wishes(name, scale.seed)
            works += [asyncio.create_task(_work(caller, todo, course)) for _ in range(IN_FLIGHT)]
        stack.push_async_callback(_end_all, works)
        all_made = asyncio.create_task(asyncio.wait(works))
        # A trouble ends before the run does where it fails.
        await asyncio.wait(
            [all_made, *troubles], timeout=scale.limit_s - course.seconds, return_when=asyncio.FIRST_COMPLETED
        )
        course.end()
        await asyncio.gather(*troubles)
        proxy.calm_down()
        await asyncio.wait([all_made], timeout=_LAST_WORDS_S)
        for task in works:
            if task.done():
                task.result()
    for call in course.calls:
        if not call.answers and call.lost is None:
            call.lost = f"no answer within {_LAST_WORDS_S:g} s after the last fault"
    return [frame for caller in callers if isinstance(caller, BluntCaller) for frame in caller.strange]


async def _work(caller: Caller, todo: Iterator[Wish], course: Course) -> None:
    for wish in todo:
        if course.over or not course.to_write:
            return
        course.to_write -= wish.tool == WRITES
        call = Call(wish.id, wish.tool)
        course.calls.append(call)
        await caller.make(wish, call)
        course.count()
        if call.answers and call.answers[0].executed == "no":  # refused for now, and so would the next be
            await asyncio.sleep(_PAUSE_S)


async def _end_again_and_again(scale: Scale, course: Course, daemon: Daemon) -> None:
    chance = random.Random(f"{scale.seed} ends")
    while await course.goes_on(chance.randrange(*scale.between)):
        await asyncio.sleep(chance.uniform(0, 0.05))
        if chance.random() < 0.75:
            await daemon.kill()
            course.happened["daemon killed"] += 1
        else:
            await daemon.stop()
            course.happened["daemon drained"] += 1
        await asyncio.sleep(chance.choice([0, 0, chance.uniform(0, 1.5)]))
        await daemon.start()


async def _stop_and_start(scale: Scale, course: Course, project: Project) -> None:
    chance = random.Random(f"{scale.seed} stops")
    while await course.goes_on(chance.randrange(*scale.between)):
        name = chance.choice(["PostgREST", "PostgreSQL"])
        part = project.postgrest if name == "PostgREST" else project.cluster
        await asyncio.to_thread(part.stop)
        course.happened[f"{name} stopped"] += 1
        await course.goes_on(chance.randrange(*scale.between))
        await asyncio.to_thread(part.start)


async def _all_sent(daemon: Daemon, project: Project, say: Say) -> Sequence[str]:
    """Start the daemon once more, so that it sends what is left at once, and return the ids that arrived."""
    say(f"{unsent(daemon.state)} rows are still to be sent")
    await daemon.start()
    give_up = time.monotonic() + _SENDING_S
    while unsent(daemon.state) and time.monotonic() < give_up:
        await asyncio.sleep(0.1)
    await daemon.stop()
    return await asyncio.to_thread(project.call_ids)


async def _tell(course: Course, proxy: Proxy, say: Say) -> None:
    while True:
        await asyncio.sleep(_TELL_S)
        ends = course.happened["daemon killed"] + course.happened["daemon drained"]
        breaks = sum(proxy.broken.values())
        say(f"{course.seconds:4.0f} s: {course.answered} calls answered, {ends} ends of the daemon, {breaks} breaks")


async def _end_all(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _damage(course: Course, proxy: Proxy) -> dict[str, int | str]:
    return {
        "connections": proxy.connections,
        "broken by the proxy": sum(proxy.broken.values()),
        **{f"  {fault}": number for fault, number in sorted(proxy.broken.items())},
        **{name: course.happened[name] for name in sorted(course.happened)},
        "time": f"{course.seconds:.0f} s",
    }
