"""Runs one input through a fuzz target, and bounds the time that it takes."""

import time
from collections.abc import Callable
from typing import Final

Target = Callable[[bytes], bool]
"""Passes an input to a parser; returns whether the parser accepted it. Raises for a defect: an exception that the
parser does not document, or a broken property."""

CPU_FLOOR_S: Final = 0.25
"""Covers a garbage collection and the first use of a cache."""
CPU_PER_MB_S: Final = 1.0
"""Every parser here is linear, and the slowest takes some tenths of a second per MB."""
_ATTEMPTS: Final = 3


class TooSlowError(AssertionError):
    """An input takes more CPU time than its size permits."""


def run_target(
    target: Target, data: bytes, *, slowdown: float = 1.0, cpu: Callable[[], float] = time.thread_time
) -> bool:
    """Runs the target; returns whether the parser accepted the input.

    ``slowdown`` multiplies the bound, for instrumented code. The time of the fastest attempt counts.

    Raises:
        TooSlowError: each attempt exceeded the bound.
    """
    bound = slowdown * (CPU_FLOOR_S + CPU_PER_MB_S * len(data) / 1e6)
    fastest = float("inf")
    for _ in range(_ATTEMPTS):
        started = cpu()
        accepted = target(data)
        fastest = min(fastest, cpu() - started)
        if fastest <= bound:
            return accepted
    raise TooSlowError(f"{len(data)} bytes take {fastest:.2f} s of CPU time; permitted are {bound:.2f} s")


def text_of_input(data: bytes) -> str:
    """The input as text; bytes can express lone surrogates (as UTF-8 does not), since callers' texts can have them."""
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def in_two(data: bytes) -> tuple[bytes, bytes]:
    """The first line, and the rest."""
    first, _, rest = data.partition(b"\n")
    return first, rest
