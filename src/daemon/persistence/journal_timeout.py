"""The time limit for persisting a result before its answer is sent.

With a database that several nodes share, there is no limit, because another node would answer a repeat from the
database.
"""

import asyncio
from collections.abc import Awaitable
from typing import Final

from ...store import StoreError

WRITE_TIMEOUT_S: Final = 2.0
"""How long a caller waits for a disk that does not respond."""


async def write_failure(writing: Awaitable[object], timeout_s: float | None = WRITE_TIMEOUT_S) -> str | None:
    """Waits for a write, up to ``timeout_s``; with None, without limit. Returns the reason if it is not persisted by
    then, otherwise None.

    After a timeout the store still completes the write once the disk responds.
    """
    try:
        async with asyncio.timeout(timeout_s):
            await writing
    except StoreError as error:
        return error.reason
    except TimeoutError:
        return f"no response within {timeout_s:g} s"
    return None
