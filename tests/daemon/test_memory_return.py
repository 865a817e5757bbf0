"""Memory is returned to the system after a peak."""

import ctypes

from toold.daemon.memory_return import FALL_BYTES, MemoryReturn, keep_large_blocks_apart


def test_memory_is_trimmed_after_a_peak() -> None:
    """Once for each fall, however long the peak lasted, and never while the held bytes rise or stay."""
    peak = FALL_BYTES
    held = iter((0, peak, peak, peak // 2, 1, 0, 0, 2 * peak, peak, 0, 0))
    memory = MemoryReturn(lambda: next(held))
    assert [memory.is_due() for _ in range(11)] == [*[False] * 5, True, False, False, True, True, False]


def test_another_c_library_has_no_effect() -> None:
    """The thresholds are set with glibc only; without it nothing happens."""
    assert keep_large_blocks_apart() is hasattr(ctypes.CDLL(None), "mallopt")
