"""``pydantic_ai.Agent`` objects as the code of agents: on toold's models and tools, journalled and resumed."""

import importlib
import re
import shutil
import sys
import tomllib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio
from tests.chaos import agent_runs
from tests.peers.conftest import PEERS, require
from tests.tools.agents.conftest import hosted
from tests.tools.agents.hosted import Hosted, calls, script
from tests.tools.agents.test_agent_approvals import paused
from tests.tools.agents.test_custom_agents import ended
from toold.protocol.error_codes import ServiceUnavailableError, ToolExecutionError
from toold.tools import read_agents

pytestmark = [
    pytest.mark.large_peer,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.filterwarnings("default"),  # of pydantic-ai
]
__all__ = ["hosted"]  # the fixture

PAGE: Final = (Path(__file__).parents[2] / "docs/custom-agents.md").read_text(encoding="utf-8")
PROGRAM: Final = Path(__file__).parent / "programs/pydantic_agents.py"
NAMES: Final = ("helper", "geographer", "careful", "needy", "with_dependencies")
AGENTS: Final = """
[agents.helper]
prompt = "You work here."
tools = ["echo", "version"]

[agents.geographer]

[agents.careful]
tools = ["echo"]
approve = ["echo"]
ask = true

[agents.needy]

[agents.with_dependencies]

[agents.cities]
"""

AGENTS_OF_KILLS: Final = """
[agents.helper]
description = "Uses pydantic-ai."
execution_type = "custom"
custom = "helper"
prompt = "Work."
tools = ["sim_effect", "status", "echo"]
"""


def _install(directory: Path) -> None:
    info = directory / "acme_pydantic-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-pydantic\nVersion: 1.0\n")
    points = "\n".join(f"{name} = acme_pydantic:{name}" for name in NAMES)
    ((module, example),) = re.findall(r"```python\n# (acme_cities)\.py\n(.*?)```", PAGE, re.DOTALL)
    (directory / f"{module}.py").write_text(example)
    (entry_point,) = re.findall(rf'^cities = "{module}:agent"$', PAGE, re.MULTILINE)
    points += "\n" + entry_point.replace('"', "")
    (info / "entry_points.txt").write_text(f"[toold.agents]\n{points}\n")
    shutil.copy(PROGRAM, directory / "acme_pydantic.py")


def _site_packages() -> Path:
    (path,) = (PEERS / "pydantic-ai").glob("lib/python*/site-packages")
    return path


@pytest.fixture(scope="module", autouse=True)
def packages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """pydantic-ai and a package that uses it, after the daemon's own packages."""
    require("pydantic-ai")
    directory = tmp_path_factory.mktemp("packages")
    _install(directory)
    added = [str(directory), str(_site_packages())]
    sys.path += added
    importlib.invalidate_caches()
    yield directory
    for path in added:
        sys.path.remove(path)


@pytest_asyncio.fixture(loop_scope="module", autouse=True)
async def agents(hosted: Hosted, packages: Path) -> AsyncIterator[None]:
    """The agents, in place of the others."""
    tables = tomllib.loads(AGENTS)["agents"]
    shared = {"description": "Uses pydantic-ai.", "execution_type": "custom"}
    hosted.daemon.agents.apply(read_agents({name: {**shared, "custom": name, **tables[name]} for name in tables}))
    await hosted.daemon.publisher.published()
    yield


def worked() -> list[str]:
    """What the agents' own tools did."""
    done: list[str] = sys.modules["acme_pydantic"].worked
    return done


async def test_it_runs_on_the_models_and_tools_of_its_role(hosted: Hosted) -> None:
    """Calls of toold's tools and of the agent's in one turn are child calls; the model reads all results, and
    what an own tool wants otherwise."""
    turn = calls(("version", {}), ("own_tool", {"number": 4}), ("own_tool", {"number": -1}), ("echo", {"txet": 1}))
    answer = await hosted.ask("helper", script(turn, "all done"))
    assert answer.structured["answer"] == "all done"
    assert answer.structured["turns"] == 2
    assert answer.metadata.usage is not None
    assert answer.metadata.usage.input_tokens > 0
    assert worked() == ["own 4"]
    (messages,) = hosted.sent()
    assert messages[0] == {"role": "system", "content": "You work here.\n\nBe brief."}
    results = {row["tool_call_id"]: row["content"] for row in messages if row["role"] == "tool"}
    texts = [results[call["id"]] for call in messages[2]["tool_calls"]]
    assert '"doubled":8' in texts[1].replace(" ", "")
    assert "must not be negative" in texts[2]
    assert "VALIDATION_ERROR" in texts[3]
    shown = await hosted.ask("helper", "x", dry_run=True)
    assert shown.structured["code"]["package"].startswith("acme-pydantic 1.0, pydantic-ai-slim 2.")
    first = answer.structured["continuation_id"]
    await hosted.ask("helper", "And now?", continuation_id=first)
    assert [row["role"] for row in hosted.sent()[0]] == ["system", "user", "assistant", "user"]


async def test_a_structured_answer(hosted: Hosted) -> None:
    """A model of pydantic is the answer's data; a wrong one is corrected by the model."""
    turns = (
        "It is Bern.",
        calls(("final_result", {"name": "Bern"})),
        calls(("final_result", {"name": "Bern", "people": 1})),
    )
    answer = await hosted.ask("geographer", script(*turns))
    assert answer.structured["answer"] == {"name": "Bern", "people": 1}
    assert answer.structured["turns"] == 3
    looked_up = (calls(("people_of", {"city": "Bern"})), calls(("final_result", {"name": "Bern", "people": 137_995})))
    answer = await hosted.ask("cities", script(*looked_up))  # the example of the documentation
    assert answer.structured["answer"] == {"name": "Bern", "people": 137_995}
    with pytest.raises(ToolExecutionError, match=r"pydantic_ai\.Agent of geographer failed"):
        await hosted.ask("geographer", script("No.", "No.", "No.", "No."))


async def test_the_answer_is_streamed(hosted: Hosted) -> None:
    """A caller that streams gets the text of the turns."""
    chunks: list[str] = []
    answer = await hosted.client.call("helper", {"prompt": script("in many words")}, on_chunk=chunks.append)
    assert answer.structured["answer"] == "in many words"
    assert "".join(chunks) == "in many words"


async def test_a_paused_run_goes_on(hosted: Hosted) -> None:
    """A question and an approval of one turn come together; no turn and no own tool is made again."""
    turn = calls(("ask_user", {"question": "Which?"}), ("count", {"word": "four"}), ("echo", {"value": "x"}))
    call_id, requests = await paused(hosted, "careful", script(turn, "done"))
    assert {each["kind"] for each in requests} == {"question", "approve"}
    asked = len(hosted.simulator.log)
    decide = {"question": {"decision": "answer", "text": "Blue."}, "approve": {"decision": "approve"}}
    decisions = [{"id": each["id"], **decide[each["kind"]]} for each in requests]
    await hosted.client.call("agent_decide", {"call_id": call_id, "decisions": decisions})
    assert (await ended(hosted, call_id))["result"]["answer"] == "done"
    assert len(hosted.simulator.log) == asked + 1
    assert worked().count("count four") == 1
    contents = [row["content"] for row in hosted.sent()[0] if row["role"] == "tool"]
    assert contents[0] == "Blue."


async def test_dependencies_come_from_code(hosted: Hosted) -> None:
    """An agent with dependencies is refused with what to do; code runs it, also several at the same time."""
    with pytest.raises(ServiceUnavailableError, match="needs dependencies of the type int"):
        await hosted.ask("needy", "x")
    answer = await hosted.ask("with_dependencies", script("first"))
    assert answer.structured["answer"].startswith("first | Simulated answer")


@pytest.mark.process
@pytest.mark.timeout(600)
async def test_it_survives_kills(tmp_path: Path, packages: Path, starts_processes: None) -> None:
    """After kills of the daemon at commits to its journal, each run has its answer, and each write happened once or is
    unknown to its model."""
    verdict = await agent_runs.run(
        tmp_path,
        runs=6,
        kills=3,
        seed=1,
        report=lambda _: None,
        makers=[agent_runs.solo_of("helper")],
        agents=AGENTS_OF_KILLS,
        packages=[packages, _site_packages()],
    )
    assert not verdict.problems
    assert verdict.kills > 0
