"""A baseline record: one JSON document with everything that was seen, and its published schema.

Every struct here is part of the document; ``record.schema.json`` beside the scripts is made of them (``schema``).
Milliseconds are what this side's clock saw unless said otherwise; ``null`` means that it is not known.
"""

from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

SIMULATE: Final = "simulate"
CHECKOUT: Final = "checkout"
"""What stands for the address of a daemon that was started for a run: from these scripts' checkout, or another one."""
FORMAT: Final = 1
"""The number of the form. It changes where a reader of the old one would go wrong."""
QUANTILE_METHOD: Final = "Hyndman and Fan's type 8 (median-unbiased), of the calls that succeeded"
INTERVAL_METHOD: Final = "95 %: percentile bootstrap, 2,000 resamples; Wilson for success rates"

Count = Annotated[int, Meta(ge=0)]
Ms = Annotated[float, Meta(ge=0)]


class RecordError(Exception):
    """A file is no record or draft that can be read; the message says which, why, and what to do."""


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """How calls were offered: ``concurrency`` at once, each followed by the next; or ``rate_per_s``, whatever became of
    earlier ones. One of both."""

    concurrency: Annotated[int, Meta(ge=1)] | None = None
    rate_per_s: Annotated[float, Meta(gt=0)] | None = None

    @property
    def label(self) -> str:
        return f"{self.concurrency} at once" if self.rate_per_s is None else f"{self.rate_per_s:g} a second"


class CallTimings(msgspec.Struct, frozen=True, kw_only=True):
    """Where the daemon says that the time went, as ``metadata`` of its answer has it."""

    daemon_ms: Ms
    """In the daemon, from the frame to the answer."""
    queue_ms: Ms
    """Of that, waiting for permits."""
    tool_ms: Ms
    """Of that, in the tool, with all that it asked for."""
    provider_ms: Ms
    """Of that, in requests to providers; those side by side are added up."""


class Tokens(msgspec.Struct, frozen=True, kw_only=True):
    """As the provider counted them."""

    input: Count
    output: Count


class Money(msgspec.Struct, frozen=True, kw_only=True):
    """By the catalog's list price."""

    amount: float
    currency: str


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One call that was made and ended. Warm-up calls are made and not recorded."""

    tool_name: str
    iteration: Annotated[int, Meta(ge=1)]
    """Counts within the tool and the load."""
    load: Load
    round: Annotated[int, Meta(ge=1)]
    """The tools take turns: which turn it was."""
    segment: Annotated[int, Meta(ge=1)]
    """1, and one more each time that the run was cut off and continued."""
    status: Literal["success", "error"]
    timestamp: str
    """When it was to start, ISO 8601 in UTC."""
    offset_s: float
    """The same, in seconds since the run began."""
    latency_ms: Ms
    """From when it was to start to its answer. With a concurrency that is when it was sent; with a rate it is when it
    was due, so that a slow answer does not hide what the next call had to wait."""
    late_ms: Ms
    """Of that, before it was sent."""
    timings: CallTimings | None = None
    """Null where no answer came."""
    tokens: Tokens | None = None
    cost: Money | None = None
    model: str | None = None
    output_bytes: Count = 0
    """Of the content blocks, as JSON."""
    error_code: str | None = None
    """The daemon's code, or ``CONNECTION_LOST``."""
    error: str | None = None
    simulated: bool = False
    """True where the answer came from a simulator."""


class Skipped(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that was asked for and not called."""

    tool_name: str
    reason: str


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """A value and its interval of 95 %; ``low`` and ``high`` are null where there are too few calls for one."""

    value: float
    low: float | None = None
    high: float | None = None


class Latency(msgspec.Struct, frozen=True, kw_only=True):
    """Of the calls that succeeded, in milliseconds."""

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
    """Means in milliseconds over the calls that succeeded. Together they are the mean latency."""

    late_ms: Ms
    """Before it was sent, which a rate counts."""
    connection_ms: Ms
    """On the way, and in this process."""
    daemon_ms: Ms
    """Reading, checking, journalling and answering."""
    queue_ms: Ms
    """Waiting for permits, the providers' among them."""
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
    """Null where no call succeeded."""
    layers: Layers | None
    throughput_per_s: Ms | None
    """Calls that succeeded, by the time in which the tool had its turns."""
    errors: dict[str, Count]
    """How many failed, by code."""
    tokens: Tokens | None
    cost: tuple[Money, ...]
    """One a currency."""
    output_bytes: Count


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """What it was measured on."""

    system: str
    processor: str
    cores: int
    memory_mib: int | None
    load_average: tuple[float, ...]
    """Of 1, 5 and 15 minutes, when the run began: what else the machine did."""


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """What it was measured with."""

    machine: Machine
    python: str
    packages: dict[str, str]
    """Of this side."""
    commit: str | None
    """Of the checkout that these scripts lie in; ``+`` behind it where files were changed."""
    daemon: str
    """Name and version, from its hello."""


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked for."""

    daemon: str
    """The address; ``simulate``: a daemon that was started for the run; ``checkout``: the same, of another checkout."""
    toolset: str | None
    tools: tuple[str, ...]
    """Those that are called, in their order."""
    arguments: dict[str, dict[str, Any]]
    """By tool, templates not filled in."""
    loads: tuple[Load, ...]
    iterations: Annotated[int, Meta(ge=1)]
    """A tool and a load."""
    warmup: Count
    """A tool, made before and not recorded."""
    rounds: Annotated[int, Meta(ge=1)]
    """Turns of each tool at most."""
    timeout_s: Annotated[float, Meta(gt=0)] | None
    """A call's deadline; null takes the tool's own."""


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """What a run saw."""

    format: Literal[1] = 1
    id: str
    started: str
    finished: str | None = None
    contention: Annotated[float, Meta(ge=0, le=1)] | None = None
    """The share of the run in which something on the machine waited for a CPU; of the last part of a run that was
    continued. Null where the kernel does not tell."""
    beside: str | None = None
    """The id of the record that was collected turn by turn with this one, from another daemon."""
    complete: bool = False
    """False where the run was cut off: some calls that were planned are not there."""
    simulated: bool
    """True where providers were simulated: the latencies of tools that ask them say nothing about real ones."""
    environment: Environment
    configuration: Configuration
    quantile_method: str = QUANTILE_METHOD
    interval_method: str = INTERVAL_METHOD
    skipped: tuple[Skipped, ...] = ()
    calls: tuple[Call, ...] = ()
    summaries: tuple[Summary, ...] = ()


class _Form(msgspec.Struct, frozen=True):
    """The one field that tells whether the others can be read."""

    format: Any = None


def write(path: Path, record: Record) -> None:
    """Write the document, whole or not at all.

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
        RecordError: it cannot be read, or is none.
    """
    try:
        content = path.read_bytes()
        form = msgspec.json.decode(content, type=_Form).format
        if form not in {None, FORMAT}:
            raise RecordError(
                f"{path} is of format {form}, and these scripts read format {FORMAT}; take those of the version that "
                "wrote it"
            )
        return msgspec.json.decode(content, type=Record)
    except OSError as error:
        raise RecordError(f"{path} cannot be read: {error.strerror}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        hint = "; a draft is finished by collect.py --continue" if path.suffix == ".ndjson" else ""
        raise RecordError(f"{path} is no baseline record: {error}{hint}") from error
