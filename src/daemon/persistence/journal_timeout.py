"""The time limit of persisting a result before its answer is sent."""

import asyncio
from collections.abc import Awaitable
from typing import Final

from ...store import StoreError

WRITE_TIMEOUT_S: Final = 2.0
"""How long a caller waits for a disk that does not respond."""


async def write_failure(writing: Awaitable[object]) -> str | None:
    """Waits for a write, up to ``WRITE_TIMEOUT_S``. Returns why it is not persisted by then; None if it is.

    After a timeout the store still completes the write once the disk responds.
    """
    try:
        async with asyncio.timeout(WRITE_TIMEOUT_S):
            await writing
    except StoreError as error:
        return error.reason
    except TimeoutError:
        return f"no response within {WRITE_TIMEOUT_S:g} s"
    return None
