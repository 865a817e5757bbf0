"""Runs the client of a2a-sdk 0.3 and prints its findings as JSON. An interpreter that has a2a-sdk runs it; it imports
nothing of toold.

Its first argument is the agent's URL, the token, and the step: ``talk``, or ``resume`` with a task's id.
"""

import asyncio
import json
import sys
import uuid
from typing import Any

import httpx
from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory
from a2a.types import AgentCard, Message, Part, Role, Task, TaskIdParams, TaskQueryParams, TextPart

DELAY = "[[sim:delay=30]]"
PATIENCE_S = 120.0


def message(text: str) -> Message:
    return Message(message_id=uuid.uuid4().hex, role=Role.user, parts=[Part(root=TextPart(text=text))])


async def events_of(client: Client, text: str) -> list[Any]:
    return [event async for event in client.send_message(message(text))]


async def task_of(client: Client, text: str) -> Task:
    """The task of the last event."""
    task: Task = (await events_of(client, text))[-1][0]
    return task


async def talk(http: httpx.AsyncClient, card: AgentCard) -> dict[str, Any]:
    client = ClientFactory(ClientConfig(streaming=True, httpx_client=http)).create(card)
    blocking = ClientFactory(ClientConfig(streaming=False, httpx_client=http)).create(card)
    polling = ClientFactory(ClientConfig(streaming=False, polling=True, httpx_client=http)).create(card)
    task = await task_of(blocking, "[[sim:say=whole]]")
    streamed = await events_of(client, "[[sim:say=streamed]]")
    slow = await task_of(polling, DELAY)
    read = await client.get_task(TaskQueryParams(id=slow.id))
    cancelled = await client.cancel_task(TaskIdParams(id=slow.id))
    left = await task_of(polling, "[[sim:delay=25]]")
    return {
        "whole": [task.status.state.value, task.artifacts[0].parts[0].root.text],
        "streamed": [streamed[-1][0].status.state.value, streamed[-1][0].artifacts[-1].parts[-1].root.text],
        "slow": [read.status.state.value, cancelled.status.state.value],
        "left": left.id,
    }


async def resume(http: httpx.AsyncClient, card: AgentCard, task_id: str) -> dict[str, Any]:
    client = ClientFactory(ClientConfig(streaming=True, httpx_client=http)).create(card)
    events = [event async for event in client.resubscribe(TaskIdParams(id=task_id))]
    return {"state": events[-1][0].status.state.value}


async def main(url: str, token: str, step: str, *task_id: str) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(headers=headers, timeout=PATIENCE_S, trust_env=False) as http:
        card = await A2ACardResolver(http, f"{url}/v0.3").get_agent_card()
        return await talk(http, card) if step == "talk" else await resume(http, card, *task_id)


print(json.dumps(asyncio.run(main(*json.loads(sys.argv[1])))))
