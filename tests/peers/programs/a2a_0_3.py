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
from a2a.types import (
    AgentCard,
    Message,
    Part,
    PushNotificationConfig,
    Role,
    Task,
    TaskIdParams,
    TaskQueryParams,
    TextPart,
)
from notified import TOKEN, receiving

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


async def pushed(http: httpx.AsyncClient, card: AgentCard) -> list[str]:
    """The states and the last text of the notifications of one task, in the SDK's types."""
    async with receiving() as receiver:
        config = PushNotificationConfig(url=receiver.url, token=TOKEN)
        options = ClientConfig(streaming=False, httpx_client=http, push_notification_configs=[config])
        task = await task_of(ClientFactory(options).create(card), "[[sim:say=pushed]]")
        notified: list[Task] = []
        while not notified or notified[-1].status.state.value != "completed":
            notified.append(Task.model_validate(await receiver.next()))
    if any(each.id != task.id for each in notified):
        raise ValueError(f"a notification of another task: {notified}")
    return [*(each.status.state.value for each in notified), notified[-1].artifacts[0].parts[0].root.text]


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
        "pushed": await pushed(http, card),
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
