"""How long an answer waits for the disk."""

import asyncio
from collections.abc import Awaitable
from typing import Final

from ...store import StoreError

PATIENCE_S: Final = 2.0
"""A disk that does not answer keeps a caller waiting for its answer no longer than this."""


async def not_on_disk(writing: Awaitable[object]) -> str | None:
    """Wait for what the store writes, as long as a caller may be kept waiting; why it is not on the disk then, or None.

    What is given up here the store writes all the same, once the disk answers.
    """
    try:
        async with asyncio.timeout(PATIENCE_S):
            await writing
    except StoreError as error:
        return error.reason
    except TimeoutError:
        return f"no answer within {PATIENCE_S:g} s"
    return None
