"""Calls of the client tests, and errors that the daemon answers them with."""

from __future__ import annotations

import asyncio
from typing import Any

from toold.client import CallResult, MCPWebSocketClient

CANCELLED = {"code": "CANCELLED", "message": "cancelled", "executed": "maybe", "retryable": False}


BUSY = {"code": "OVER_CAPACITY", "message": "too much", "executed": "no", "retryable": True}


def start(client: MCPWebSocketClient, text: str = "hi", **options: Any) -> asyncio.Task[CallResult]:
    return asyncio.create_task(client.call("echo", {"text": text}, **options))
