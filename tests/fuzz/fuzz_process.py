"""The process that fuzzes one target: ``python -m tests.fuzz.fuzz_process TARGET [flags] [directories]``."""

import gc
import logging
import random
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import atheris

INSTRUMENTED: Final = (
    "toold.audit",
    "toold.cli.bridge",
    "toold.client",
    "toold.daemon.config",
    "toold.daemon.transports.mcp",
    "toold.protocol",
    "toold.serving",
    "toold.shaping",
    "toold.sources",
    "toold.tools.builtin.workflow",
    "toold.tools.json_schema",
    "toold.tools.orchestration",
    "toold.tools.toolsets",
    "toold.tools.yaml_reader",
)
"""The packages and modules that are tested. Instrumentation of all of toold would take half a minute."""


def other_modules() -> Iterator[str]:
    """The modules of toold that are not tested."""
    spec = find_spec("toold")
    assert spec is not None
    assert spec.origin is not None
    source = Path(spec.origin).parent
    for path in source.rglob("*.py"):
        parts = ("toold", *path.relative_to(source).with_suffix("").parts)
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if not f"{module}.".startswith(tuple(f"{name}." for name in INSTRUMENTED)):
            yield module


with atheris.instrument_imports(include=["toold"], exclude=list(other_modules())):
    from .fuzz_targets import TARGETS, seeds
    from .json_mutation import JsonMutation
    from .target_result import run_target

SLOWDOWN: Final = 4.0
"""How much longer instrumented code may take."""
_REPEAT_ONE_IN: Final = 50


def mutate(data: bytes, max_size: int, seed: int, json: JsonMutation) -> bytes:
    """The mutations of libFuzzer, or a change of JSON values; sometimes repeats a part of the input many times, which
    shows work that grows faster than the input.
    """
    draw = random.Random(seed)
    if draw.randrange(2) and (mutated := json.mutate(data, draw)) is not None:
        return mutated[:max_size]
    if not data or draw.randrange(_REPEAT_ONE_IN):
        return bytes(atheris.Mutate(data, max_size))
    begin = draw.randrange(len(data))
    part = data[begin : begin + draw.randint(1, 16)]
    times = draw.randint(2, 1 + max_size // len(part))
    return (data[:begin] + part * times + data[begin + len(part) :])[:max_size]


def main() -> None:
    """Fuzz until the time is over or an input fails."""
    name = sys.argv.pop(1)
    for logger in ("toold", "uvicorn"):
        logging.getLogger(logger).setLevel(logging.CRITICAL)  # a skipped frame is a warning each
    target = TARGETS[name]
    inputs = [data for _, data in seeds(name)]
    for data in inputs:  # fills caches
        target(data)
    json = JsonMutation(inputs)
    gc.collect()
    gc.freeze()
    atheris.Setup(
        sys.argv,
        lambda data: run_target(target, data, slowdown=SLOWDOWN) and None,
        custom_mutator=lambda data, max_size, seed: mutate(data, max_size, seed, json),
    )
    atheris.Fuzz()


if __name__ == "__main__":
    main()
