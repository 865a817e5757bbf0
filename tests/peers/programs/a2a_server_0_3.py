"""Serves an agent with a2a-sdk 0.3 over JSON-RPC. An interpreter that has a2a-sdk runs it; it imports nothing of toold.

Its argument is the port.
"""

import asyncio
import sys

import uvicorn
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.apps import A2AStarletteApplication
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentSkill, Part, TextPart
from a2a.utils import new_task


def part(text: str) -> Part:
    return Part(root=TextPart(text=text))


class Executor(AgentExecutor):  # type: ignore[misc] # the package is in another environment
    """As that of 1.0."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        task = context.current_task
        if task is None:
            task = new_task(context.message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        text = context.get_user_input()
        await updater.start_work()
        if "ask" in text:
            await updater.requires_input(updater.new_agent_message([part("Which colour?")]), final=True)
            return
        if "wait" in text:
            await asyncio.sleep(600)
        if "fail" in text:
            await updater.failed(updater.new_agent_message([part("No paper.")]))
            return
        for number, piece in enumerate(("You wrote ", text)):
            await updater.add_artifact([part(piece)], artifact_id="a", append=number > 0, last_chunk=number > 0)
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def main(port: int) -> None:
    card = AgentCard(
        name="Pelican",
        description="Greets.",
        version="1",
        url=f"http://127.0.0.1:{port}/",
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="greet", name="Greet", description="Greets people.", tags=["greeting"])],
    )
    handler = DefaultRequestHandler(agent_executor=Executor(), task_store=InMemoryTaskStore())
    app = A2AStarletteApplication(agent_card=card, http_handler=handler).build()
    uvicorn.run(app, port=port, log_level="warning")


main(int(sys.argv[1]))
