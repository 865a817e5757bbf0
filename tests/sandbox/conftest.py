"""Tools for sandboxed programs (contacts, deals, files, weather), and sandboxes that are closed after the tests."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final
from uuid import uuid4

import pytest
import pytest_asyncio
from toold.sandbox import Program, ProgramModule, ProgramOutput, Sandbox, SandboxLimits, ToolFailedError

LIMITS: Final = SandboxLimits(cpu_s=5.0, memory_bytes=64 * 1024**2, calls=50)

CONTACTS: Final = [
    {"id": 1, "name": "Ada Lovelace", "email": "ada@analytical.example", "city": "London", "company_id": 1},
    {"id": 2, "name": "Grace Hopper", "email": "grace@navy.example", "city": "Arlington", "company_id": 2},
    {"id": 3, "name": "Alan Turing", "email": "alan@bletchley.example", "city": "London", "company_id": 1},
    {"id": 4, "name": "Edsger Dijkstra", "email": "edsger@eindhoven.example", "city": "Eindhoven", "company_id": 3},
    {"id": 5, "name": "Barbara Liskov", "email": "barbara@mit.example", "city": "Boston", "company_id": 2},
    {"id": 6, "name": "Donald Knuth", "email": "don@stanford.example", "city": "Stanford", "company_id": 3},
]
DEALS: Final = [
    {"id": 101, "title": "Engine", "amount": 1200.5, "status": "open", "contact_id": 1, "closes": "2026-03-01"},
    {"id": 102, "title": "Compiler", "amount": 5000, "status": "won", "contact_id": 2, "closes": "2026-01-15"},
    {"id": 103, "title": "Enigma", "amount": 800, "status": "lost", "contact_id": 3, "closes": "2025-11-30"},
    {"id": 104, "title": "Semaphore", "amount": 2500, "status": "open", "contact_id": 4, "closes": "2026-02-10"},
    {"id": 105, "title": "Types", "amount": 4100.25, "status": "won", "contact_id": 5, "closes": "2026-02-28"},
    {"id": 106, "title": "TeX", "amount": 3000, "status": "open", "contact_id": 6, "closes": "2026-04-20"},
    {"id": 107, "title": "Note G", "amount": 150, "status": "won", "contact_id": 1, "closes": "2025-12-24"},
]
FILES: Final = {
    "logs/app.log": (
        "2026-03-01T08:00:01Z INFO started pid=812\n"
        "2026-03-01T08:00:05Z ERROR db: connection refused (attempt 1)\n"
        "2026-03-01T08:00:09Z WARN slow query took 1532ms\n"
        "2026-03-01T08:01:00Z ERROR db: connection refused (attempt 2)\n"
        "2026-03-01T08:02:30Z INFO request id=77 took 45ms\n"
        "2026-03-02T09:00:00Z ERROR cache: key 'user:9' lost\n"
    ),
    "data/orders.csv": (
        "order,region,qty,price\n1,EU,3,9.50\n2,US,1,120.00\n3,EU,10,1.25\n4,APAC,2,33.10\n5,US,4,5.00\n"
    ),
    "docs/readme.md": "# Tool\n\nSee [guide](guide.md) and [API](https://api.example/v1).\n\n## Install\n\n## Use\n",
    "data/config.json": '{"name": "demo", "retries": 3, "features": {"beta": true, "limits": [1, 2, 3]}}',
}
HIGHS_AND_LOWS: Final = {
    "London": [(11, 4), (13, 6), (9, 2)],
    "Boston": [(5, -2), (7, 0), (3, -4)],
    "Eindhoven": [(10, 3), (12, 5), (8, 1)],
}

_HEAD: Final = "from __future__ import annotations\nfrom typing import Any, Literal, NotRequired, TypedDict\n"
STUBS: Final = {
    "crm": {
        "search_contacts": "async def search_contacts(*, query: str, limit: int = 10) -> dict[str, Any]: ...",
        "get_contact": "async def get_contact(*, contact_id: int) -> dict[str, Any]: ...",
        "list_deals": (
            'async def list_deals(*, status: Literal["open", "won", "lost"] | None = None, page: int = 1)'
            " -> dict[str, Any]: ..."
        ),
        "create_note": "async def create_note(*, contact_id: int, text: str) -> dict[str, Any]: ...",
    },
    "files": {
        "list_files": "async def list_files(*, directory: str | None = None) -> list[str]: ...",
        "read_text": "async def read_text(*, path: str) -> str: ...",
    },
    "weather": {
        "forecast": "async def forecast(*, city: str) -> dict[str, Any]: ...",
        "never": "async def never() -> None: ...",
    },
}


def stub_of(functions: dict[str, str], chosen: Sequence[str]) -> str:
    """The source of a stub module with the selected functions."""
    return "\n".join([_HEAD, *(functions[item] for item in chosen)])


MODULES: Final = {
    name: ProgramModule(frozenset(functions), partial(stub_of, functions)) for name, functions in STUBS.items()
}


@dataclass
class RecordingTools:
    """The implementation of the tools. ``made`` records the calls; ``going`` counts the running ones."""

    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    going: int = 0
    refusals: int = 2
    """How many times the forecast for Lima fails before it succeeds."""

    async def __call__(self, module: str, function: str, arguments: dict[str, Any]) -> Any:
        self.calls.append((f"{module}.{function}", arguments))
        self.going += 1
        try:
            await asyncio.sleep(0)
            return await getattr(self, function)(**arguments)
        finally:
            self.going -= 1

    async def search_contacts(self, query: str, limit: int = 10) -> Any:
        result = [item for item in CONTACTS if query.lower() in f"{item['name']} {item['city']}".lower()]
        return {"items": result[:limit], "total": len(result)}

    async def get_contact(self, contact_id: int) -> Any:
        for item in CONTACTS:
            if item["id"] == contact_id:
                return item
        raise ToolFailedError("NOT_FOUND", f"There is no contact {contact_id}.")

    async def list_deals(self, status: str | None = None, page: int = 1) -> Any:
        deals = [item for item in DEALS if status is None or item["status"] == status]
        more = page + 1 if len(deals) > page * 3 else None
        return {"items": deals[(page - 1) * 3 : page * 3], "next_page": more}

    async def create_note(self, contact_id: int, text: str) -> Any:
        await self.get_contact(contact_id)
        return {"id": 9000 + len(self.calls), "contact_id": contact_id, "chars": len(text)}

    async def list_files(self, directory: str | None = None) -> Any:
        return sorted(path for path in FILES if directory is None or path.startswith(f"{directory}/"))

    async def read_text(self, path: str) -> Any:
        if path not in FILES:
            raise ToolFailedError("NOT_FOUND", f"There is no file {path!r}.")
        return FILES[path]

    async def forecast(self, city: str) -> Any:
        if city == "Lima" and self.refusals:
            self.refusals -= 1
            raise ToolFailedError("RATE_LIMITED", "Too many requests.")
        days = HIGHS_AND_LOWS.get(city) or ([(25, 19)] if city == "Lima" else None)
        if days is None:
            raise ToolFailedError("NOT_FOUND", f"There is no city {city!r}.")
        dated = enumerate(days, start=1)
        return {
            "city": city,
            "days": [{"date": f"2026-03-0{day}", "high": high, "low": low} for day, (high, low) in dated],
        }

    async def never(self) -> Any:
        await asyncio.Event().wait()


@pytest.fixture
def recorded_tools() -> RecordingTools:
    """The tools, with a record of their calls."""
    return RecordingTools()


@pytest_asyncio.fixture(loop_scope="module")
async def make(starts_processes: None) -> AsyncIterator[Callable[..., Sandbox]]:
    """Return a function that creates a sandbox: ``make(limits, programs=2)``. It is closed after the test."""
    async with AsyncExitStack() as stack:

        def made(limits: SandboxLimits = LIMITS, programs: int = 2) -> Sandbox:
            sandbox = Sandbox(limits, programs=programs)
            stack.push_async_callback(sandbox.close)
            return sandbox

        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(starts_processes: None) -> AsyncIterator[Sandbox]:
    """A sandbox for all tests of a module; programs share no state."""
    sandbox = Sandbox(LIMITS, programs=2)
    yield sandbox
    await sandbox.close()


@pytest.fixture
def run(shared: Sandbox, recorded_tools: RecordingTools) -> Callable[..., Any]:
    """Return a function that runs a program and returns its value: ``await run(code)``."""
    return running(shared, recorded_tools)


@pytest.fixture
def run_in(recorded_tools: RecordingTools) -> Callable[[Sandbox], Callable[..., Any]]:
    """Return ``run`` for a separate sandbox: ``run_in(sandbox)``."""
    return lambda sandbox: running(sandbox, recorded_tools)


def running(sandbox: Sandbox, recorded_tools: RecordingTools) -> Callable[..., Any]:
    """Return a function that runs a program in the sandbox with the tools of ``recorded_tools``."""

    async def ran(code: str, *, output: ProgramOutput | None = None, timeout_s: float = 30.0, owner: str = "") -> Any:
        program, whose = Program(code, MODULES), owner or uuid4().hex  # by default each program has a different owner
        return await sandbox.run(program, recorded_tools, output or ProgramOutput(), timeout_s=timeout_s, owner=whose)

    return ran
