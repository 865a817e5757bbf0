"""The measurement: all servers run, and the same clients load them in turn, round by round."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final, TypeAlias

from ..driving import ClientTransport, Drive, Driven
from ..servers import LoadGenerator, Server, bare_server, daemon, fastmcp_server, mcp_sdk_server_alone

CLIENTS: Final = (1, 16, 256)
WAIT_MS: Final = 50
_SMALL: Final = 64
PAYLOADS: Final = {"64 B": _SMALL, "4 KiB": 4 * 1024, "1 MiB": 1024 * 1024}
WAITING: Final = f"waits {WAIT_MS} ms"
"""The workload of a waiting tool, with the smallest payload."""
WORKLOADS: Final = (*PAYLOADS, WAITING)
"""The workloads: ``echo`` with texts of these sizes, and the waiting tool."""

_OUT_OF_THE_WAY: Final = {
    "TOOLD_MAX_RUNNING": "1024",
    "TOOLD_MAX_WAITING": "4096",
    "TOOLD_SPILL_BYTES": str(8 * 1024 * 1024),
}
"""The daemon's limits, so that no call waits for a permit and no answer spills to a file."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The durations; seconds are per round, server, workload and number of clients."""

    rounds: int
    warm_up_s: float
    seconds: float
    longest_s: float


FULL: Final = Plan(rounds=3, warm_up_s=0.2, seconds=1.0, longest_s=8.0)
QUICK: Final = Plan(rounds=1, warm_up_s=0.1, seconds=0.3, longest_s=4.0)


@dataclass(frozen=True, slots=True)
class Side:
    """A server with one transport; the daemon has two."""

    name: str
    server: Server
    transport: ClientTransport
    about: str

    def order(self, cell: "Cell", plan: Plan) -> Drive:
        """The order for the load generator."""
        workload, clients = cell
        waits = workload == WAITING
        ours = self.name in OURS
        return Drive(
            self.transport,
            self.server.http_port if self.transport == "http" else self.server.port,
            self.server.process.pid,
            clients,
            _SMALL if waits else PAYLOADS[workload],
            tool="wait" if waits and not ours else "echo",
            arguments={"delay_ms": WAIT_MS} if waits and ours else {},
            path="/wait" if waits and self.name == BARE else "/",
            warm_up_s=plan.warm_up_s,
            seconds=plan.seconds,
            longest_s=plan.longest_s,
        )


BARE: Final = "bare echo"
SOCKET: Final = "toold, WebSocket"
HTTP: Final = "toold, /mcp"
OURS: Final = (SOCKET, HTTP)
SDK: Final = "mcp SDK"
FASTMCP: Final = "FastMCP"

Cell: TypeAlias = tuple[str, int]
"""A workload and the number of clients."""
Seen: TypeAlias = dict[Cell, dict[str, list[Driven]]]
"""The rounds by cell and name of a side."""


@contextmanager
def sides() -> Iterator[list[Side]]:
    """Starts all servers, and waits until they are idle.

    Raises:
        RuntimeError: one did not start.
    """
    with ExitStack() as stack:
        bare = stack.enter_context(bare_server())
        ours = stack.enter_context(daemon(**_OUT_OF_THE_WAY))
        sdk = stack.enter_context(mcp_sdk_server_alone("sessions"))
        fastmcp = stack.enter_context(fastmcp_server("sessions"))
        for server in (bare, ours, sdk, fastmcp):
            server.settle()
        yield [
            Side(BARE, bare, "socket", "`websockets`, which says each frame back; uvloop"),
            Side(SOCKET, ours, "socket", "journal and audit on; `websockets`, uvloop"),
            Side(HTTP, ours, "http", "the same daemon, stateless, JSON answers"),
            Side(SDK, sdk, "http", sdk.about),
            Side(FASTMCP, fastmcp, "http", fastmcp.about),
        ]


def measure(servers: Sequence[Side], plan: Plan, load: LoadGenerator, say: Callable[[str], None]) -> Seen:
    """Runs all rounds of all cells. ``say`` gets the current step."""
    cells = [(workload, clients) for workload in WORKLOADS for clients in CLIENTS]
    seen: Seen = {cell: {side.name: [] for side in servers} for cell in cells}
    for number in range(plan.rounds):
        for cell in cells:
            for side in servers if number % 2 == 0 else reversed(servers):  # alternate the order
                say(f"round {number + 1} of {plan.rounds}: {cell[0]} by {cell[1]}, {side.name}")
                seen[cell][side.name].append(load.ask(side.order(cell, plan), Driven))
    return seen
