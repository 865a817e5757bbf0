"""Runs the client of a2a-sdk 1.x and prints its findings as JSON. An interpreter that has a2a-sdk runs it; it imports
nothing of toold.

Its first argument is the agent's URL, the token, the binding, and the step: ``talk``, or ``resume`` with a task's id.
"""

import asyncio
import json
import sys
import uuid
from typing import Any
from urllib.parse import urljoin

import httpx
from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory
from a2a.types import a2a_pb2 as types
from a2a.utils.errors import TaskNotFoundError
from a2a.utils.signing import create_signature_verifier
from google.protobuf.json_format import ParseDict
from jwt import PyJWK
from notified import TOKEN, receiving

DELAY = "[[sim:delay=30]]"
PATIENCE_S = 120.0


def request(text: str, *, at_once: bool = False, **fields: str) -> types.SendMessageRequest:
    message = types.Message(message_id=uuid.uuid4().hex, role=types.ROLE_USER, parts=[types.Part(text=text)], **fields)
    configuration = types.SendMessageConfiguration(return_immediately=at_once)
    return types.SendMessageRequest(message=message, configuration=configuration)


async def task_of(client: Client, sent: types.SendMessageRequest) -> types.Task:
    """The task of the last response that has one."""
    tasks = [response.task async for response in client.send_message(sent) if response.HasField("task")]
    return tasks[-1]


def state(task: types.Task) -> str:
    name: str = types.TaskState.Name(task.status.state)
    return name


async def pushed(client: Client) -> list[str]:
    """The events of the notifications of one task, in the SDK's strict types, and the state of the last one."""
    async with receiving() as receiver:
        sent = request("[[sim:say=pushed]]")
        config = types.TaskPushNotificationConfig(url=receiver.url, token=TOKEN)
        sent.configuration.task_push_notification_config.CopyFrom(config)
        task = await task_of(client, sent)
        events: list[types.StreamResponse] = []
        while not events or events[-1].status_update.status.state != types.TASK_STATE_COMPLETED:
            events.append(ParseDict(await receiver.next(), types.StreamResponse()))
    if any(event.status_update.task_id not in {task.id, ""} for event in events):
        raise ValueError(f"a notification of another task: {events}")
    texts = [part.text for event in events for part in event.artifact_update.artifact.parts]
    return [*(str(event.WhichOneof("payload")) for event in events), texts[-1]]


async def talk(factory: ClientFactory, whole: ClientFactory, card: types.AgentCard) -> dict[str, Any]:
    client, blocking = factory.create(card), whole.create(card)
    task = await task_of(blocking, request("[[sim:say=whole]]"))
    responses = [response async for response in client.send_message(request("[[sim:say=streamed]]"))]
    kinds = [response.WhichOneof("payload") for response in responses]
    texts = [part.text for each in responses for part in each.artifact_update.artifact.parts]
    slow = await task_of(blocking, request(DELAY, at_once=True))
    read = await client.get_task(types.GetTaskRequest(id=slow.id))
    cancelled = await client.cancel_task(types.CancelTaskRequest(id=slow.id))
    try:
        await client.get_task(types.GetTaskRequest(id="no-such-task"))
        absent = ""
    except TaskNotFoundError as error:
        absent = str(error)
    listed = await client.list_tasks(types.ListTasksRequest(context_id=task.context_id))
    left = await task_of(blocking, request("[[sim:delay=25]]", at_once=True))
    return {
        "whole": [state(task), task.artifacts[0].parts[0].text],
        "streamed": [kinds[0], kinds[-1], texts[-1]],
        "slow": [state(read), state(cancelled)],
        "absent": absent,
        "pushed": await pushed(blocking),
        "listed": [each.id for each in listed.tasks] == [task.id],
        "left": left.id,
    }


async def resume(factory: ClientFactory, card: types.AgentCard, task_id: str) -> dict[str, Any]:
    client = factory.create(card)
    responses = [each async for each in client.subscribe(types.SubscribeToTaskRequest(id=task_id))]
    return {"state": types.TaskState.Name(responses[-1].status_update.status.state), "first": state(responses[0].task)}


async def main(url: str, token: str, binding: str, step: str, *task_id: str) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(headers=headers, timeout=PATIENCE_S, trust_env=False) as http:
        keys = (await http.get(urljoin(url, "/.well-known/jwks.json"))).json()["keys"]
        verify = create_signature_verifier(
            lambda kid, _: PyJWK(next(key for key in keys if key["kid"] == kid)), ["ES256"]
        )
        card = await A2ACardResolver(http, url).get_agent_card(signature_verifier=verify)
        options: Any = {"httpx_client": http, "supported_protocol_bindings": [binding], "use_client_preference": True}
        factory = ClientFactory(ClientConfig(streaming=True, **options))
        if step == "talk":
            return await talk(factory, ClientFactory(ClientConfig(streaming=False, **options)), card)
        return await resume(factory, card, *task_id)


print(json.dumps(asyncio.run(main(*json.loads(sys.argv[1])))))
