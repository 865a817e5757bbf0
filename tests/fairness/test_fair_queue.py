"""Fair sharing of permits: between principals, their sessions, and the calls of one session."""

import asyncio
from collections import Counter, deque
from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from toold.fairness import FairQueue, Permits

PRINCIPALS = st.sampled_from("ABC")
SESSIONS = st.sampled_from("12")


@dataclass(eq=False)
class Caller:
    """A call that wants a permit, and gives it back when it is let go."""

    number: int
    principal: str
    session: str
    task: asyncio.Task[None] | None = None
    holds: bool = False
    done: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def waits(self) -> bool:
        return not self.holds and self.task is not None and not self.task.done()

    async def run(self, permits: Permits) -> None:
        async with permits.of(self.principal, self.session):
            self.holds = True
            try:
                await self.done.wait()
            finally:
                self.holds = False


class SharedPermits(RuleBasedStateMachine):
    """Calls of any principals and sessions start, end and are cancelled in any order, while the limit changes."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.permits = Permits("test", 3)
        self.permits.keep_reserve(True)
        self.count = 0
        self.waiting: list[Caller] = []
        self.holding: list[Caller] = []

    def teardown(self) -> None:
        for caller in (*self.waiting, *self.holding):
            caller.done.set()
        self.loop.run_until_complete(self.settle())
        while self.waiting or self.holding:  # those that were served by the last step
            for caller in (*self.waiting, *self.holding):
                caller.done.set()
            self.loop.run_until_complete(self.settle())
        assert (self.permits.in_use, self.permits.waiting) == (0, 0)
        self.loop.close()

    async def settle(self) -> None:
        """Let everybody act, and check the order in which waiting calls were served."""
        for _ in range(4):
            await asyncio.sleep(0)
        self.holding = [caller for caller in self.holding if caller.holds]
        served = [caller for caller in self.waiting if caller.holds]
        for caller in served:
            earlier = [item for item in self.waiting if item.waits and item.number < caller.number]
            assert (caller.principal, caller.session) not in {(item.principal, item.session) for item in earlier}
        self.waiting = [caller for caller in self.waiting if caller.waits]
        self.holding += served

    @rule(principal=PRINCIPALS, session=SESSIONS, calls=st.integers(1, 3))
    def come(self, principal: str, session: str, calls: int) -> None:
        async def begin() -> None:
            for _ in range(calls):
                self.count += 1
                caller = Caller(self.count, principal, session)
                caller.task = asyncio.create_task(caller.run(self.permits))
                self.waiting.append(caller)
            await self.settle()

        self.loop.run_until_complete(begin())

    @precondition(lambda self: self.holding)
    @rule(index=st.integers(0, 9))
    def end(self, index: int) -> None:
        self.holding[index % len(self.holding)].done.set()
        self.loop.run_until_complete(self.settle())

    @precondition(lambda self: self.waiting or self.holding)
    @rule(index=st.integers(0, 9), releases=st.booleans())
    def cancel(self, index: int, releases: bool) -> None:
        """Cancel a call, perhaps in the turn of the loop in which a permit is released."""
        callers = [*self.waiting, *self.holding]
        if releases and self.holding:
            self.holding[0].done.set()
        task = callers[index % len(callers)].task
        assert task is not None
        task.cancel()
        self.loop.run_until_complete(self.settle())

    @rule(limit=st.integers(1, 4))
    def resize(self, limit: int) -> None:
        self.permits.resize(limit)
        self.loop.run_until_complete(self.settle())

    @invariant()
    def counts_are_right(self) -> None:
        assert self.permits.in_use == len(self.holding)
        assert self.permits.waiting == len(self.waiting)

    @invariant()
    def no_permit_is_idle_while_somebody_may_have_it(self) -> None:
        """Work-conserving: only the reserve is idle, and only if all that wait hold a permit."""
        free = self.permits.limit - len(self.holding)
        held = {caller.principal for caller in self.holding}
        if free > self.permits.reserved:
            assert not self.waiting
        elif free > 0:
            assert all(caller.principal in held for caller in self.waiting)


TestSharedPermits = SharedPermits.TestCase
TestSharedPermits.settings = settings(max_examples=50, stateful_step_count=20, deadline=None)


async def test_never_more_than_the_limit_and_one_is_kept_for_others() -> None:
    """A principal gets all permits but one, and another principal gets that one at once."""
    permits = Permits("test", 3)
    permits.keep_reserve(True)
    callers = [Caller(number, "A", "1") for number in range(5)]
    for caller in callers:
        caller.task = asyncio.create_task(caller.run(permits))
    await asyncio.sleep(0)
    assert (permits.in_use, permits.waiting, permits.free("A"), permits.free("B")) == (2, 3, False, True)
    async with permits.of("B", "2"):
        assert (permits.in_use, permits.free("C")) == (3, False)
    assert permits.waiting == 3
    permits.keep_reserve(False)  # the only principal uses all
    await asyncio.sleep(0)
    assert (permits.in_use, permits.waiting) == (3, 2)
    for caller in callers:
        caller.done.set()
    await asyncio.gather(*(caller.task for caller in callers if caller.task))


@pytest.mark.parametrize("limit", [1, 2])
async def test_a_limit_of_one_has_no_reserve(limit: int) -> None:
    """Otherwise no principal could use the permit for a second call."""
    permits = Permits("test", limit)
    permits.keep_reserve(True)
    assert permits.reserved == limit - 1


def served(queue: FairQueue[str], held: Counter[str]) -> list[str]:
    """The items in the order in which they are served; each holds its permit from then on."""
    order = []
    while (item := queue.pop(held, newcomers_only=False)) is not None:
        held[item[0]] += 1
        order.append(item[1])
    return order


def test_who_holds_least_is_next_then_in_turn() -> None:
    """A hundred waiting calls of one principal delay another one by one turn, and so within its sessions."""
    queue: FairQueue[str] = FairQueue()
    for number in range(100):
        queue.push("A", "busy", f"A-busy-{number}")
    queue.push("A", "other", "A-other-0")
    queue.push("B", "one", "B-0")
    queue.push("B", "one", "B-1")
    order = served(queue, Counter({"A": 2}))
    assert order[:6] == ["B-0", "B-1", "A-busy-0", "A-other-0", "A-busy-1", "A-busy-2"]
    assert (len(order), queue.size) == (103, 0)


def test_nobody_starves() -> None:
    """While others keep arriving, each waiting call is served within one round of all principals."""
    queue: FairQueue[str] = FairQueue()
    queue.push("patient", "one", "patient")
    held: Counter[str] = Counter()
    running: deque[str] = deque()
    for turn in range(10):
        for name in "ABC":
            queue.push(name, "one", f"{name}-{turn}")
        if len(running) == 2:  # a permit of two is released
            first = running.popleft()
            held[first] -= 1
            held = +held
        principal, item = queue.pop(held, newcomers_only=False) or ("", "")
        held[principal] += 1
        running.append(principal)
        if item == "patient":
            break
    assert turn <= 3
