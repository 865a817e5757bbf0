"""A baseline record: one JSON document with all calls of a run, and its published schema.

Every struct in this module is part of the document; ``record.schema.json`` next to the scripts is generated from them
(``schema``). Milliseconds are measured by the client's clock unless stated otherwise; ``null`` means unknown.
"""

from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

SIMULATE: Final = "simulate"
CHECKOUT: Final = "checkout"
"""Used in place of the address of a daemon that a run started: from the scripts' checkout, or from another one."""
FORMAT: Final = 1
"""The version of the format. It changes when readers of the old format would misread the new one."""
QUANTILE_METHOD: Final = "Hyndman and Fan's type 8 (median-unbiased), of the calls that succeeded"
INTERVAL_METHOD: Final = "95 %: percentile bootstrap, 2,000 resamples; Wilson for success rates"

Count = Annotated[int, Meta(ge=0)]
Ms = Annotated[float, Meta(ge=0)]


class RecordError(Exception):
    """A file is not a readable record or draft; the message names it, with the reason and the fix."""


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """Either a ``concurrency``: a call starts when one ends; or a ``rate_per_s``, regardless of earlier calls."""

    concurrency: Annotated[int, Meta(ge=1)] | None = None
    rate_per_s: Annotated[float, Meta(gt=0)] | None = None

    @property
    def label(self) -> str:
        return f"{self.concurrency} at once" if self.rate_per_s is None else f"{self.rate_per_s:g} a second"


class CallTimings(msgspec.Struct, frozen=True, kw_only=True):
    """The time in each part of the daemon, from ``metadata`` of its answer."""

    daemon_ms: Ms
    """In the daemon, from the frame to the answer."""
    queue_ms: Ms
    """Of that, waiting for permits."""
    tool_ms: Ms
    """Of that, in the tool, including its requests."""
    provider_ms: Ms
    """Of that, in requests to providers; parallel ones are summed."""


class Tokens(msgspec.Struct, frozen=True, kw_only=True):
    """The provider's token counts."""

    input: Count
    output: Count


class Money(msgspec.Struct, frozen=True, kw_only=True):
    """Cost by the catalog's list price."""

    amount: float
    currency: str


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One call that was made and ended. Warm-up calls are made and not recorded."""

    tool_name: str
    iteration: Annotated[int, Meta(ge=1)]
    """The number of the call within its tool and load."""
    load: Load
    round: Annotated[int, Meta(ge=1)]
    """The number of the tool's turn."""
    segment: Annotated[int, Meta(ge=1)]
    """1, incremented each time that an interrupted run is continued."""
    status: Literal["success", "error"]
    timestamp: str
    """The scheduled start, ISO 8601 in UTC."""
    offset_s: float
    """The scheduled start, in seconds since the run began."""
    latency_ms: Ms
    """From the scheduled start to the answer. With a concurrency the scheduled start is the time of sending; with a
    rate it is when the call was due, so that the wait of calls behind a slow answer is included."""
    late_ms: Ms
    """Of that, before it was sent."""
    timings: CallTimings | None = None
    """Null if there was no answer."""
    tokens: Tokens | None = None
    cost: Money | None = None
    model: str | None = None
    output_bytes: Count = 0
    """Of the content blocks, as JSON."""
    error_code: str | None = None
    """The daemon's code, or ``CONNECTION_LOST``."""
    error: str | None = None
    simulated: bool = False
    """True if the answer came from a simulator."""


class Skipped(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that was requested and not called."""

    tool_name: str
    reason: str


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """A value and its 95 % interval; ``low`` and ``high`` are null if there are too few calls."""

    value: float
    low: float | None = None
    high: float | None = None


class Latency(msgspec.Struct, frozen=True, kw_only=True):
    """Latencies of the successful calls, in milliseconds."""

    p50: Estimate
    p90: Estimate
    p95: Estimate
    p99: Estimate
    min: Ms
    max: Ms
    mean: Ms
    stdev: Ms | None
    """Of the sample (n - 1); null for one call."""


class Layers(msgspec.Struct, frozen=True, kw_only=True):
    """Means over the successful calls, in milliseconds. They add up to the mean latency."""

    late_ms: Ms
    """Before it was sent; only with a rate."""
    connection_ms: Ms
    """On the network and in the client's process."""
    daemon_ms: Ms
    """Reading, validating, journaling and answering."""
    queue_ms: Ms
    """Waiting for permits, including those of providers."""
    tool_ms: Ms
    """In the tool itself."""
    provider_ms: Ms
    """Waiting for providers."""


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """All calls of one tool under one load."""

    tool_name: str
    load: Load
    count: Count
    successes: Count
    success_rate: Estimate
    latency_ms: Latency | None
    """Null if no call succeeded."""
    layers: Layers | None
    throughput_per_s: Ms | None
    """Successful calls divided by the duration of the tool's turns."""
    errors: dict[str, Count]
    """The number of failures by code."""
    tokens: Tokens | None
    cost: tuple[Money, ...]
    """One amount per currency."""
    output_bytes: Count


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """The machine that made the calls."""

    system: str
    processor: str
    cores: int
    memory_mib: int | None
    load_average: tuple[float, ...]
    """Over 1, 5 and 15 minutes, when the run began."""


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """The software and hardware of a run."""

    machine: Machine
    python: str
    packages: dict[str, str]
    """The versions on the client's side."""
    commit: str | None
    """The commit of the scripts' checkout, with ``+`` if files were changed."""
    daemon: str
    """Name and version, from its hello."""


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a run."""

    daemon: str
    """The address; ``simulate``: a daemon started for the run; ``checkout``: the same, from another checkout."""
    toolset: str | None
    tools: tuple[str, ...]
    """The called tools, in order."""
    arguments: dict[str, dict[str, Any]]
    """By tool, with templates unresolved."""
    loads: tuple[Load, ...]
    iterations: Annotated[int, Meta(ge=1)]
    """Per tool and load."""
    warmup: Count
    """Calls per tool that are made first and not recorded."""
    rounds: Annotated[int, Meta(ge=1)]
    """The maximum number of turns per tool."""
    timeout_s: Annotated[float, Meta(gt=0)] | None
    """The timeout of a call; null uses the tool's default."""


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """The data of one run."""

    format: Literal[1] = 1
    id: str
    started: str
    finished: str | None = None
    contention: Annotated[float, Meta(ge=0, le=1)] | None = None
    """The share of the run, or of the last segment of a continued run, in which a task on the machine waited for a CPU.
    Null if the kernel does not report it."""
    paired_run: str | None = None
    """The id of the record that was collected in alternation with this one, from another daemon."""
    complete: bool = False
    """False if the run was interrupted, so that planned calls are missing."""
    simulated: bool
    """True if providers were simulated, so that latencies of tools that use them do not apply to real ones."""
    environment: Environment
    configuration: Configuration
    quantile_method: str = QUANTILE_METHOD
    interval_method: str = INTERVAL_METHOD
    skipped: tuple[Skipped, ...] = ()
    calls: tuple[Call, ...] = ()
    summaries: tuple[Summary, ...] = ()


class _Form(msgspec.Struct, frozen=True):
    """The fields that decide how the others are read."""

    format: Any = None
    beside: str | None = None
    """The earlier name of ``paired_run``."""


def write(path: Path, record: Record) -> None:
    """Write the document atomically.

    Raises:
        RecordError: it cannot be written.
    """
    temporary = path.with_name(path.name + ".part")
    try:
        temporary.write_bytes(msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n")
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise RecordError(f"{path} cannot be written: {error.strerror}") from error


def read(path: Path) -> Record:
    """Read a document.

    Raises:
        RecordError: it cannot be read, or is not a record.
    """
    try:
        content = path.read_bytes()
        form = msgspec.json.decode(content, type=_Form)
        if form.format not in {None, FORMAT}:
            raise RecordError(
                f"{path} has format {form.format}, and these scripts read format {FORMAT}; use the scripts of the "
                "version that wrote it"
            )
        record = msgspec.json.decode(content, type=Record)
        return record if form.beside is None else msgspec.structs.replace(record, paired_run=form.beside)
    except OSError as error:
        raise RecordError(f"{path} cannot be read: {error.strerror}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        hint = "; a draft is finished by collect.py --continue" if path.suffix == ".ndjson" else ""
        raise RecordError(f"{path} is not a baseline record: {error}{hint}") from error
