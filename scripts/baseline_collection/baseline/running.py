"""A run from its options to its record: the daemon, the tools, the draft and the record."""

import asyncio
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec
from rich.console import Console
from toold.client import MCPWebSocketClient
from toold.protocol.error_codes import CallError

from .collecting import CLIENT_NAME, CollectionError, Connect, Side, collect, connected
from .contention import Contention
from .draft import Draft
from .environment import ROOT, environment
from .matrix import SHIPPED, Matrix, choose, read_matrix, workspace_of
from .own_daemon import own_daemon
from .plan import planned, rounds_for
from .progress import Watch, progress_bar
from .record import CHECKOUT, SIMULATE, Call, Configuration, Load, Record, RecordError, write
from .summary import record_of
from .table import counted, show

EVERY_TOOL: Final = "full"
"""The default toolset."""
_FEATURES: Final = ("ack", "resume", "going_away")
"""Without ``stream``: the time to the whole answer is measured, so vendors send it in one piece."""

EXIT_WRONG: Final = 2
"""Options, matrix or files are invalid, or a file cannot be written."""
EXIT_GONE: Final = 3
"""The daemon was unreachable or stopped."""
EXIT_INTERRUPTED: Final = 130


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a new run."""

    daemon: str | None
    """An address, ``simulate``, or None for the daemon that clients on this machine find."""
    tools: tuple[str, ...] | None = None
    """None: all tools of the toolset."""
    candidate: str | Path | None = None
    """A second daemon that alternates with the first one: as ``daemon``, or the directory of a checkout from which to
    start it.
    """
    candidate_matrix: Path | None = None
    """Its arguments, if these make it slower."""
    toolset: str | None = None
    loads: tuple[Load, ...] = (Load(concurrency=1),)
    iterations: int = 10
    warmup: int = 2
    timeout_s: float | None = None
    matrix: Path = SHIPPED


def begin_runs(wish: Wish, out: Path, times: int, console: Console) -> int:
    """Make ``times`` new runs, one after the other, each with newly started daemons if it starts any. Returns the exit
    code; the first incomplete run is the last one. The records are ``numbered(out, 1)`` and so on.

    Raises:
        CollectionError, MatrixError, RecordError: a run could not be started.
    """
    outs = [numbered(out, number) for number in range(1, times + 1)]
    for path in outs:
        if path.exists():
            raise RecordError(f"{path} is there already, and would be taken for a part of these runs; remove it")
    for number, path in enumerate(outs, start=1):
        if code := begin_run(wish, path, console, candidate_first=number % 2 == 0, table=False):
            return code
    return 0


def begin_run(wish: Wish, out: Path, console: Console, *, candidate_first: bool = False, table: bool = True) -> int:
    """Make a new run and its record at ``out``, and that of ``paired_run`` at ``candidate_path(out)``. Returns the exit
    code. ``candidate_first`` starts the candidate first, and it takes the first turn. ``table`` also prints the
    figures.

    Raises:
        CollectionError, MatrixError, RecordError: the run could not be started.
    """
    wanted: list[tuple[str | Path | None, Path, Matrix]] = [(wish.daemon, out, read_matrix(wish.matrix))]
    if wish.candidate is not None:
        wanted.append((wish.candidate, candidate_path(out), read_matrix(wish.candidate_matrix or wish.matrix)))
    if candidate_first:
        wanted.reverse()
    with ExitStack() as stack:
        begun: list[tuple[Path, Record, Connect, Matrix]] = []
        for daemon, path, matrix in wanted:
            connect = stack.enter_context(_daemon(daemon, wish.toolset or EVERY_TOOL, workspace_of(wish.matrix)))
            begun.append((path, asyncio.run(_begin(wish, daemon, matrix, connect)), connect, matrix))
        runs = _by_turns({path: run for path, run, _, _ in begun}, out)
        sides = [
            Side(stack.enter_context(Draft.begin(draft_of(path), runs[path])), connect, matrix)
            for path, _, connect, matrix in begun
        ]
        return _finish(sides, wish.matrix, console, table=table)


def continue_run(path: Path, matrix_path: Path, console: Console) -> int:
    """Make the remaining calls of a run, with the daemon and the options in its draft. Returns the exit code.

    Raises:
        CollectionError, MatrixError, RecordError: it cannot be continued.
    """
    matrix = read_matrix(matrix_path)
    with Draft.reopen(path) as draft:
        asked = draft.run.configuration
        if asked.daemon == CHECKOUT:
            raise RecordError(f"{path} is of another checkout's daemon, which is gone; begin a new run")
        for tool, arguments in asked.arguments.items():
            if tool not in matrix.tools or matrix.tools[tool].arguments != arguments:
                raise RecordError(
                    f"{matrix_path} has other arguments for {tool} than the run began with; name the --matrix that it "
                    "began with, or begin a new one"
                )
        with _daemon(asked.daemon, asked.toolset or EVERY_TOOL, workspace_of(matrix_path)) as connect:
            now = environment(asyncio.run(_daemon_version(connect)))
            if change := changed(draft.run, now.python, now.commit, now.daemon):
                raise RecordError(f"{change} since the run began; begin a new one")
            return _finish([Side(draft, connect, matrix)], matrix_path, console)


def candidate_path(out: Path) -> Path:
    """The path of the candidate's record."""
    return out.with_name(f"{out.stem}-candidate{out.suffix}")


def numbered(out: Path, number: int) -> Path:
    """The path of the record of one of several runs."""
    return out.with_name(f"{out.stem}-{number:02}{out.suffix}")


def draft_of(out: Path) -> Path:
    """The path of a run's draft."""
    return out.with_suffix(".ndjson")


def changed(run: Record, python: str, commit: str | None, daemon: str) -> str | None:
    """The first difference of the environment from that of the run's start, with which calls would not be comparable;
    None if there is none.
    """
    before = run.environment
    for what, one, other in (
        ("Python", before.python, python),
        ("the commit", before.commit, commit),
        ("the daemon", before.daemon, daemon),
    ):
        if one != other:
            return f"{what} has changed from {one} to {other}"
    return None


@contextmanager
def _daemon(daemon: str | Path | None, toolset: str, workspace: Path) -> Iterator[Connect]:
    """A function that makes clients of the daemon. A simulated daemon runs during the block."""

    def connect_to(host: str | None, token: str | None = None) -> Callable[[], MCPWebSocketClient]:
        return lambda: MCPWebSocketClient(
            host, token=token, features=_FEATURES, client_name=CLIENT_NAME, workspace=workspace, toolset=toolset
        )

    if daemon == SIMULATE or isinstance(daemon, Path):
        with own_daemon(workspace, python_of(daemon) if isinstance(daemon, Path) else None) as own:
            yield connect_to(own.url, own.token)
    else:
        yield connect_to(daemon)


def python_of(checkout: Path) -> Path:
    """The interpreter of a checkout's environment, as ``make setup`` creates it.

    Raises:
        CollectionError: there is none.
    """
    python = checkout.resolve() / ".venv/bin/python"
    if not python.exists():
        raise CollectionError(f"{checkout} has no .venv/bin/python to start a daemon with; run `make setup` there")
    return python


async def _begin(wish: Wish, named: str | Path | None, matrix: Matrix, connect: Connect) -> Record:
    async with connected(connect, 1) as (client,):
        listed = frozenset(tool.name for tool in await client.list_tools())
        ours = named == SIMULATE or isinstance(named, Path)  # their providers are simulated
        simulated = ours or await is_simulated(client, listed)
        daemon, version = client.url, _version_of(client)
    tools, skipped = choose(matrix, wish.tools, listed, simulated=simulated)
    if not tools:
        reasons = "; ".join(f"{one.tool_name}: {one.reason}" for one in skipped)
        raise CollectionError(f"there is no tool to call: {reasons or 'the toolset is empty'}")
    now = datetime.now(UTC)
    return Record(
        id=f"{now:%Y%m%dT%H%M%SZ}-{uuid.uuid4().hex[:8]}",
        started=now.isoformat(),
        simulated=simulated,
        environment=environment(version, named if isinstance(named, Path) else ROOT),
        configuration=Configuration(
            daemon=CHECKOUT if isinstance(named, Path) else SIMULATE if named == SIMULATE else daemon,
            toolset=wish.toolset,
            tools=tools,
            arguments={name: matrix.tools[name].arguments for name in tools},
            loads=wish.loads,
            iterations=wish.iterations,
            warmup=wish.warmup,
            rounds=rounds_for(wish.iterations, wish.loads),
            timeout_s=wish.timeout_s,
        ),
        skipped=skipped,
    )


def _by_turns(runs: dict[Path, Record], out: Path) -> dict[Path, Record]:
    """The single run, or both runs of an alternating pair; the second one names the record at ``out``.

    Raises:
        CollectionError: the daemons do not have the same tools, or only one of them is simulated.
    """
    if len(runs) == 1:
        return runs
    first, other = runs[out], runs[candidate_path(out)]
    if first.configuration.tools != other.configuration.tools or first.simulated != other.simulated:
        different = sorted(set(first.configuration.tools) ^ set(other.configuration.tools))
        why = f"only one has {', '.join(different)}; name the --tools" if different else "only one is simulated"
        raise CollectionError(f"the two daemons cannot take turns: {why}")
    return {out: first, candidate_path(out): msgspec.structs.replace(other, paired_run=first.id)}


async def is_simulated(client: MCPWebSocketClient, listed: frozenset[str]) -> bool:
    """Whether the daemon reports a simulated provider. If it cannot be asked, the answers show it."""
    if "status" not in listed:
        return False
    try:
        status = (await client.call("status", {"recent": 0})).structured
    except CallError as error:
        raise CollectionError(f"the daemon does not say whether it is simulated: {error}") from error
    return any(provider["simulated"] for provider in status["providers"])


async def _daemon_version(connect: Connect) -> str:
    async with connected(connect, 1) as (client,):
        return _version_of(client)


def _version_of(client: MCPWebSocketClient) -> str:
    server = client.hello.server if client.hello else None
    return f"{server.name} {server.version}" if server else "unknown"


def _finish(sides: Sequence[Side], matrix: Path, console: Console, *, table: bool = True) -> int:
    """Make the remaining calls and write the records, even after an error. ``matrix`` is the file for continuing the
    run.
    """
    code, why = 0, ""
    watch, contention = Watch(), Contention()
    with progress_bar(console) as progress:
        total = sum(planned(side.draft.run.configuration) for side in sides)
        task = progress.add_task("", total=total, completed=sum(len(side.draft.calls) for side in sides))

        def ended(call: Call) -> None:
            watch.note(call)
            progress.update(task, advance=1, description=watch.line(call))

        try:
            asyncio.run(collect(sides, ended))
        except KeyboardInterrupt:
            code, why = EXIT_INTERRUPTED, "interrupted"
        except CollectionError as error:
            code, why = EXIT_GONE, str(error)
        except RecordError as error:
            code, why = EXIT_WRONG, str(error)
    share = contention.share()
    for side in sides:
        _write(side.draft, matrix, share, why, console, table=table)
    return code


def resume_command(draft: Path, matrix: Path) -> str:
    """The options that continue a run; the shipped matrix is the default."""
    return f"--continue {draft}" + ("" if matrix == SHIPPED else f" --matrix {matrix}")


def _write(draft: Draft, matrix: Path, contention: float | None, why: str, console: Console, *, table: bool) -> None:
    """Write the record next to the draft. The draft is removed if no calls remain."""
    record = record_of(draft, contention)
    out = draft.path.with_suffix(".json")
    try:
        write(out, record)
    except RecordError as error:
        raise RecordError(f"{error}; free some space and resume with {resume_command(draft.path, matrix)}") from error
    if table:
        show(record, console)
    console.print(f"{counted(len(record.calls), 'call')} in {out}", soft_wrap=True, markup=False, highlight=False)
    if record.complete:
        draft.path.unlink()
    else:
        resume = f"resume with {resume_command(draft.path, matrix)}"
        console.print(f"not complete: {why}; {resume}", soft_wrap=True, markup=False, highlight=False)
