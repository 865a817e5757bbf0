"""Serves an agent with a2a-sdk 1.x, over JSON-RPC or HTTP+JSON, with a signed card. An interpreter that has a2a-sdk
runs it; it imports nothing of toold.

Its arguments are the port, the binding, and the file of the key.
"""

import asyncio
import sys
from pathlib import Path

import uvicorn
from a2a.helpers import new_task_from_user_message
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import a2a_pb2 as types
from a2a.utils.signing import create_agent_card_signer
from starlette.applications import Starlette


class Executor(AgentExecutor):  # type: ignore[misc] # the package is in another environment
    """Streams a greeting; asks for a colour if the message says so; works until it is cancelled if it says that."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        task = context.current_task
        if task is None:
            task = new_task_from_user_message(context.message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        text = context.get_user_input()
        await updater.start_work()
        if "ask" in text:
            question = updater.new_agent_message([types.Part(text="Which colour?")])
            await updater.requires_input(question)
            return
        if "wait" in text:
            await asyncio.sleep(600)
        if "fail" in text:
            await updater.failed(updater.new_agent_message([types.Part(text="No paper.")]))
            return
        for number, piece in enumerate(("You wrote ", text)):
            parts = [types.Part(text=piece)]
            await updater.add_artifact(parts, artifact_id="a", append=number > 0, last_chunk=number > 0)
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def main(port: int, binding: str, key: str) -> None:
    url = f"http://127.0.0.1:{port}"
    card = types.AgentCard(
        name="Pélican",
        description="Greets.",
        version="1",
        capabilities=types.AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        supported_interfaces=[types.AgentInterface(url=url, protocol_binding=binding, protocol_version="1.0")],
        skills=[types.AgentSkill(id="greet", name="Greet", description="Greets people.", tags=["greeting"])],
    )
    header = {"kid": "k1", "alg": "ES256", "jku": None, "typ": "JOSE"}
    card = create_agent_card_signer(Path(key).read_bytes(), header)(card)
    handler = DefaultRequestHandler(Executor(), InMemoryTaskStore(), card)
    calls = create_rest_routes(handler) if binding == "HTTP+JSON" else create_jsonrpc_routes(handler, "/")
    uvicorn.run(Starlette(routes=[*create_agent_card_routes(card), *calls]), port=port, log_level="warning")


main(int(sys.argv[1]), *sys.argv[2:])
