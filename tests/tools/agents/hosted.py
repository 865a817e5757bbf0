"""The agents that tests call, and scripts for their models."""

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from toold.client import CallResult, MCPWebSocketClient
from toold.daemon.app import Daemon
from toold.providers.simulator import Simulator
from toold.tools import Arguments, tool

AGENTS: Final = """
[agents.helper]
description = "Helps."
prompt = "You help."
tools = ["echo", "version", "status"]
max_turns = 3

[agents.extractor]
description = "Extracts."
prompt = "Extract."
answer_retries = 1
answer_schema = { type = "object", properties = { city = { type = "string" } }, required = ["city"] }

[agents.chain]
description = "One after the other."
execution_type = "sequential"
roles = [{ name = "first", prompt = "First." }, { name = "second", prompt = "Second." }]

[agents.pair]
description = "Both get the request."
execution_type = "parallel"
roles = [{ name = "left", prompt = "L.", tools = ["version"] }, { name = "right", prompt = "R.", tools = ["version"] }]

[agents.panel]
description = "At once."
execution_type = "parallel"
aggregator_role = "editor"
roles = [
    { name = "law", prompt = "Law." },
    { name = "tech", prompt = "Tech.", model = "kimi-k2.6" },
    { name = "editor", prompt = "Edit." },
]

[agents.rounds]
description = "Again and again."
execution_type = "loop"
max_iterations = 3
stop_when = "answer = 'good'"
roles = [{ name = "writer", prompt = "Write." }, { name = "critic", prompt = "Review." }]

[agents.desk]
description = "Delegates."
execution_type = "coordinator"
coordinator_role = "lead"
roles = [{ name = "lead", prompt = "Lead." }, { name = "clerk", prompt = "Work.", tools = ["echo"] }]

[agents.board]
description = "Delegates in levels."
execution_type = "hierarchical"
coordinator_role = "chair"
roles = [
    { name = "chair", prompt = "Chair.", workers = ["lead"] },
    { name = "lead", prompt = "Lead.", workers = ["clerk"] },
    { name = "clerk", prompt = "Work." },
]

[agents.switch]
description = "Chooses who answers."
execution_type = "hub-spoke"
hub_role = "hub"
roles = [
    { name = "hub", prompt = "Route." },
    { name = "sales", prompt = "Sell." },
    { name = "support", prompt = "Help." },
]

[agents.manager]
description = "Calls another agent."
prompt = "Manage."
agents = ["helper"]

[agents.reader]
description = "Has its prompt in a file."
prompt_ref = "reading"
metadata = { tone = "calm" }

[agents.careful_reader]
description = "Has its prompt in a file, and asks."
prompt_ref = "asking"
ask = true

[agents.models]
description = "Has models of three origins."
execution_type = "sequential"
model = "kimi-k2.6"
roles = [
    { name = "own", prompt_ref = "naming", model = "glm-4.7-flash" },
    { name = "named", prompt_ref = "naming" },
    { name = "shared", prompt = "p" },
]

[agents.frugal]
description = "Has few tokens."
prompt = "Be short."
tools = ["version"]
max_tokens = 9000

[agents.poor]
description = "Has little money."
prompt = "Be short."
tools = ["version"]
model = "kimi-k2.6"
run_budget = "0.000001 USD"

[agents.careful]
description = "Asks before it writes."
prompt = "Write."
tools = ["echo", "version"]
approve = ["echo"]
ask = true

[agents.careful_composer]
description = "Has tools that call tools."
prompt = "Compose."
tools = ["echo", "execute_tool", "execute_pipeline", "agent_decide"]
approve = ["echo"]

[agents.careless]
description = "Misspells what needs approval."
prompt = "p"
tools = ["echo"]
approve = ["ehco"]

[agents.careful_desk]
description = "Delegates to a role that asks."
execution_type = "coordinator"
coordinator_role = "lead"
roles = [{ name = "lead", prompt = "Lead." }, { name = "clerk", prompt = "Work.", tools = ["echo"], approve = ["*"] }]

[agents.careful_panel]
description = "Asks in two of three roles."
execution_type = "parallel"
roles = [
    { name = "left", prompt = "L.", tools = ["echo"], approve = ["echo"] },
    { name = "right", prompt = "R.", tools = ["echo"], approve = ["echo"] },
    { name = "free", prompt = "F.", tools = ["echo"] },
]

[agents.broken]
description = "Names a tool that is not there."
prompt = "p"
tools = ["ehco"]
"""

SMALL_MODELS: Final = """
[providers.small]
base_url = "{url}"
api_key = "{key}"
sdk = "http"
[models."small/window"]
context_window = 8000
[agents.narrow]
description = "Has a small window."
prompt = "Be short."
model = "small/window"
tools = ["fill", "read_result"]
[agents.narrow_careful]
description = "Has a small window, and asks before it writes."
prompt = "Be short."
model = "small/window"
tools = ["fill", "echo", "read_result"]
approve = ["echo"]
[agents.unstated]
description = "Has a window that is unknown."
prompt = "Be short."
model = "small/unknown"
tools = ["fill"]
[agents.lengthy]
description = "Has a small window, and shortens nothing."
prompt = "Be short."
model = "small/window"
tools = ["fill"]
compaction = false
[agents.narrow_writer]
description = "Cannot read handles."
prompt = "Be short."
model = "small/window"
tools = ["fill"]
"""


class FillArguments(Arguments):
    text: str
    times: int


@tool("fill", read_only=True, open_world=False)
async def fill(arguments: FillArguments, _: object) -> str:
    """Returns a text as often as asked."""
    return arguments.text * arguments.times


@dataclass(frozen=True)
class Hosted:
    """A running daemon with agents, as a test sees it."""

    client: MCPWebSocketClient
    simulator: Simulator
    daemon: Daemon
    directory: Path

    async def ask(self, agent: str, prompt: str, **arguments: Any) -> CallResult:
        return await self.client.call(agent, {"prompt": prompt, **arguments})

    async def result(self, call_id: str) -> dict[str, Any]:
        """The data of a detached call's answer, when it has ended."""
        while True:
            answer = (await self.client.call("call_result", {"call_id": call_id})).structured
            if "result" in answer:
                return dict(answer["result"])
            await asyncio.sleep(0.05)

    def sent(self, number: int = 1) -> list[list[dict[str, Any]]]:
        """The messages of the last requests to models, oldest first."""
        return [request.body["messages"] for request in self.simulator.log[-number:]]


def script(*items: dict[str, Any] | str) -> str:
    """A prompt to which the model answers turn by turn; a text is an answer."""
    turns = [{"text": item} if isinstance(item, str) else item for item in items]
    return f"Do it. [[sim:script={json.dumps(turns)}]]"


def calls(*wanted: tuple[str, Any]) -> dict[str, Any]:
    """A turn in which the model calls these functions."""
    return {"calls": [{"name": name, "arguments": arguments} for name, arguments in wanted]}
