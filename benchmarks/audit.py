"""``python -m benchmarks.audit``: the cost of ``echo`` while Supabase is up, down, slow or rejecting, in one run.

All daemons run at once and are loaded in turn, so that what the machine does besides falls on all alike. Two of them
send nothing: what lies between those two is what this machine cannot tell apart.
"""

import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from statistics import median
from typing import Final

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from .load import Pace, Paced, Saturate, Saturated
from .measure import CONNECTIONS, IN_FLIGHT, RATE
from .servers import LoadGenerator, Server, daemon, load_generator, supabase_stand_in

_ROUNDS: Final = 7
_WARM_UP_S: Final = 0.3
_SATURATE_S: Final = 1.5
_PACE_S: Final = 1.0
_LEAST_NOISE: Final = 0.1
"""The smallest assumed noise; two identical daemons rarely differ by less."""
_DOWN: Final = "http://127.0.0.1:9"
"""The discard port, on which no server listens."""


@dataclass(frozen=True, slots=True)
class Figures:
    """The medians of one daemon's rounds."""

    cpu_us_per_call: float
    to_off: tuple[float, ...]
    """CPU time per call relative to ``off``, per round, since the machine's load changes between rounds."""
    p50_ms: float
    p99_ms: float


def main() -> int:
    """Measure and print. Returns 1 if a sending daemon costs more than the noise."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is ended on the way out
    console = Console()
    try:
        with console.status("starting") as status, load_generator() as load, _daemons() as servers:
            for server in servers:
                server.settle()
            seen = _measure(servers, load, status.update)
    except RuntimeError as error:
        console.print(f"not measured: {error}", markup=False, soft_wrap=True)
        return 1
    noise = max(_LEAST_NOISE, median(abs(ratio - 1) for ratio in seen["off, again"].to_off))
    _show(seen, noise, console)
    return 0 if all(median(one.to_off) - 1 <= noise for one in seen.values()) else 1


@contextmanager
def _daemons() -> Iterator[list[Server]]:
    with ExitStack() as stack:
        port = stack.enter_context(supabase_stand_in())
        base = f"http://127.0.0.1:{port}"
        urls = {"up": f"{base}/accepts", "down": _DOWN, "slow (5 s)": f"{base}/slow", "refusing": f"{base}/refuses"}
        servers = [stack.enter_context(daemon(name)) for name in ("off", "off, again")]
        for name, url in urls.items():
            settings = {"SUPABASE_URL": url, "SUPABASE_SERVICE_ROLE_KEY": "a-key-of-the-benchmark"}
            servers.append(stack.enter_context(daemon(name, **settings)))
        yield servers


def _measure(servers: Sequence[Server], load: LoadGenerator, say: Callable[[str], None]) -> dict[str, Figures]:
    saturated: dict[str, list[Saturated]] = {server.name: [] for server in servers}
    paced: dict[str, list[Paced]] = {server.name: [] for server in servers}
    for number in range(_ROUNDS):
        for server in servers if number % 2 == 0 else reversed(servers):
            say(f"round {number + 1} of {_ROUNDS}: Supabase {server.name}")
            order = Saturate(server.port, server.process.pid, CONNECTIONS, IN_FLIGHT, _WARM_UP_S, _SATURATE_S)
            saturated[server.name].append(load.ask(order, Saturated))
            paced[server.name].append(load.ask(Pace(server.port, CONNECTIONS, RATE, _PACE_S), Paced))
    cpu = {name: [one.cpu_s / one.calls * 1_000_000 for one in rounds] for name, rounds in saturated.items()}
    return {
        name: Figures(
            cpu_us_per_call=median(cpu[name]),
            to_off=tuple(one / off for one, off in zip(cpu[name], cpu["off"], strict=True)),
            p50_ms=median(one.p50_ms for one in paced[name]),
            p99_ms=median(one.p99_ms for one in paced[name]),
        )
        for name in cpu
    }


def _show(seen: Mapping[str, Figures], noise: float, console: Console) -> None:
    table = Table(
        title=f"echo by the state of Supabase (a stand-in), medians of {_ROUNDS} rounds",
        caption=f"noise: {noise:.0%}, the difference of two daemons that send nothing, at least {_LEAST_NOISE:.0%}",
        title_justify="left",
        caption_justify="left",
        box=SIMPLE_HEAD,
        pad_edge=False,
    )
    for heading in ("Supabase", "CPU/call", "to off", "p50", "p99", ""):
        table.add_column(heading, justify="left" if heading in {"Supabase", ""} else "right")
    for name, one in seen.items():
        ratio = median(one.to_off)
        verdict = "" if name == "off" else "within noise" if ratio - 1 <= noise else "[red]above noise[/]"
        table.add_row(
            name,
            f"{one.cpu_us_per_call:.1f} µs",
            f"{ratio:.2f}",
            f"{one.p50_ms:.2f} ms",
            f"{one.p99_ms:.2f} ms",
            verdict,
        )
    console.print(table)


if __name__ == "__main__":
    sys.exit(main())
