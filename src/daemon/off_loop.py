"""Runs long work outside of the event loop, for calls with many values or long texts (decision 54).

There is only one such thread. C code, such as a JSON decoder, holds Python's global lock for each of its steps; with
several threads, the event loop would wait for the steps of all of them.
"""

from typing import Final

from ..tools import WorkThread

LONG_WORK_THREAD: Final = WorkThread("toold-long-work")
off_loop: Final = LONG_WORK_THREAD.run
