"""Returns memory to the system after a peak. Works only with glibc; elsewhere it does nothing (decision 63).

glibc raises its threshold for separate mappings whenever a large block is freed, up to 32 MiB. Then large frames are in
the heap between small objects, and the process keeps their pages after they are freed. With a fixed threshold they are
in separate mappings, which the kernel reclaims at once. The memory of smaller blocks is trimmed after a peak.
"""

import asyncio
import ctypes
import gc
from collections.abc import Callable
from typing import Final

import structlog

_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
"""Parameters of mallopt(3)."""

MMAP_BYTES: Final = 4 * 1024**2
"""Larger blocks get a separate mapping, which costs two system calls and a page fault per 4 KiB. For calls of 1 MiB
that was nearly half of the CPU time."""
_TRIM_BYTES: Final = 16 * 1024**2
"""Free memory at the top of the heap is returned if it is more than this. The default with a fixed threshold is 128
KiB, which would cost a system call for every few calls."""
FALL_BYTES: Final = 32 * 1024**2
"""The memory is trimmed after the bytes that are held for clients have fallen by this much."""
_CHECK_INTERVAL_S: Final = 1.0

_log = structlog.get_logger("toold.daemon")


def keep_large_blocks_apart() -> bool:
    """Sets glibc's thresholds. Returns False if this is another C library."""
    mallopt = _function("mallopt", 2)
    if mallopt is None:
        return False
    return bool(mallopt(_M_MMAP_THRESHOLD, MMAP_BYTES) and mallopt(_M_TRIM_THRESHOLD, _TRIM_BYTES))


class MemoryReturn:
    """Trims the memory when the bytes that the daemon holds have fallen."""

    def __init__(self, held: Callable[[], int]) -> None:
        self._held = held
        self._trim = _function("malloc_trim", 1)
        self._peak = 0

    async def watch(self) -> None:
        """Trims the memory after each peak, as long as the daemon runs."""
        while self._trim is not None:
            await asyncio.sleep(_CHECK_INTERVAL_S)
            if self.is_due():
                # Closed connections leave answers in reference cycles, whose size Python does not count.
                gc.collect()
                # In a thread: it takes some milliseconds per 100 MiB, without the interpreter's lock.
                await asyncio.to_thread(self._trim, 0)
                _log.debug("memory returned to the system")

    def is_due(self) -> bool:
        """Whether the held bytes have fallen by ``FALL_BYTES`` since the last peak."""
        held = self._held()
        self._peak = max(self._peak, held)
        if self._peak - held < FALL_BYTES:
            return False
        self._peak = held
        return True


def _function(name: str, arguments: int) -> Callable[..., int] | None:
    """A function of the C library; None if there is no such function."""
    try:
        function = getattr(ctypes.CDLL(None), name)
    except (OSError, AttributeError):
        return None
    function.argtypes = [ctypes.c_int if name == "mallopt" else ctypes.c_size_t] * arguments
    function.restype = ctypes.c_int
    return function  # type: ignore[no-any-return]
