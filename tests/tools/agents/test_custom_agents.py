"""The flow ``custom``: code of an installed package makes the steps of a run."""

import asyncio
import importlib
import itertools
import re
import sys
import tomllib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio
from toold.protocol.error_codes import CallError, InvalidArgumentsError, ServiceUnavailableError, ToolExecutionError
from toold.tools import AgentContext, EarlierSteps, read_agents
from toold.tools.agents import AgentDefinitionError, agent_tool, read_agent
from toold.tools.agents.agent_steps import AgentSteps

from . import custom_code
from .hosted import Hosted, calls, script
from .test_agent_approvals import paused

pytestmark = pytest.mark.asyncio(loop_scope="module")

PAGE: Final = (Path(__file__).parents[3] / "docs/custom-agents.md").read_text(encoding="utf-8")
CODE: Final = "tests.tools.agents.custom_code"
TWO_ROLES: Final = [
    {"name": "reader", "prompt": "Read.", "tools": ["echo", "version"]},
    {"name": "writer", "prompt": "Write."},
]
CUSTOM: Final[dict[str, dict[str, Any]]] = {
    "all_steps": {"roles": TWO_ROLES},
    "careful_code": {"tools": ["echo", "version"], "approve": ["echo"], "ask": True},
    "caller": {"execution_type": "single", "prompt": "Call.", "agents": ["moody"]},
    "moody": {"tools": ["echo", "version"]},
    "failing": {"roles": TWO_ROLES},
    "waiting": {},
    "drawing": {},
    "hanging": {"timeout_s": 0.3},
    "not_async": {},
    "no_argument": {},
    "broken_import": {},
    "missing": {},
}


def _blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(scope="module", autouse=True)
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """An installed package with entry points for the code of the tests."""
    directory = tmp_path_factory.mktemp("packages")
    info = directory / "acme_agents-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-agents\nVersion: 1.2\n")
    (directory / "acme_broken.py").write_text("import acme_nowhere\n")
    points = {
        name: f"{CODE}:{name}"
        for name in ("all_steps", "waiting", "drawing", "moody", "failing", "not_async", "no_argument")
    }
    points |= {"hanging": f"{CODE}:failing", "careful_code": f"{CODE}:careful", "broken_import": "acme_broken:run"}
    (module, function) = re.findall(r'^triage = "(\w+):(\w+)"$', PAGE, re.MULTILINE)[0]
    points["triage"] = f"{module}:{function}"
    (directory / f"{module}.py").write_text(_blocks("python")[0])
    lines = "\n".join(f"{name} = {value}" for name, value in points.items())
    (info / "entry_points.txt").write_text(f"[toold.agents]\n{lines}\n")
    sys.path.insert(0, str(directory))
    importlib.invalidate_caches()
    yield
    sys.path.remove(str(directory))


def _code(name: str, fields: dict[str, Any]) -> dict[str, str]:
    return {} if "execution_type" in fields else {"custom": name}


@pytest_asyncio.fixture(loop_scope="module", autouse=True)
async def agents(hosted: Hosted) -> AsyncIterator[None]:
    """The custom agents, in place of the others."""
    custom_code.runs.clear()
    custom_code.behaviour.clear()
    custom_code.begun.clear()
    shared = {"description": "Custom.", "execution_type": "custom"}
    hosted.daemon.agents.apply(
        read_agents({name: {**shared, **_code(name, fields), **fields} for name, fields in CUSTOM.items()})
        | read_agents(tomllib.loads(_blocks("toml")[1])["agents"])
    )
    await hosted.daemon.publisher.published()
    yield


async def ended(hosted: Hosted, call_id: str) -> dict[str, Any]:
    """The result or the error of a call that continues by itself."""
    while True:
        answer = (await hosted.client.call("call_result", {"call_id": call_id})).structured
        if answer["state"] not in {"running", "waiting", "ending"}:
            return dict(answer)
        await asyncio.sleep(0.02)


async def test_code_makes_the_steps(hosted: Hosted) -> None:
    """Roles, turns, tool calls and the code's own steps are child calls, which the answer counts and lists."""
    wanted = {"calls": [{"name": "lookup", "arguments": {}}]}
    answer = await hosted.ask("all_steps", script(calls(("version", {})), script(wanted)))
    text = answer.structured["answer"]
    assert " True lookup 1 97 0." in text
    assert answer.structured["turns"] == 3
    assert [(call["role"], call["tool"], call["id"]) for call in answer.structured["calls"]] == [
        ("reader", "version", "s1/t1.0"),
        ("", "echo", "s2"),
    ]
    (run,) = (await hosted.client.call("agent_runs", {"agent": "all_steps"})).structured["runs"]
    assert (run["turns"], run["calls"]) == (3, 2)
    recorded = (await hosted.client.call("agent_runs", {"run_id": run["run_id"]})).structured
    assert [turn["id"] for turn in recorded["steps"]] == ["s1/t1", "s1/t2", "s3"]
    with pytest.raises(InvalidArgumentsError, match="the agent has code"):
        await hosted.client.call("agent_replay", {"run_id": run["run_id"]})
    (messages,) = hosted.sent()
    assert [row["role"] for row in messages] == ["system", "user"]
    assert messages[0]["content"] == "Write."


async def test_a_pause_waits_for_all_branches_and_is_not_an_exception(hosted: Hosted) -> None:
    """The requests of all branches come in one pause; the code that runs again gets the stored results of its steps,
    and the time of its first run."""
    call_id, requests = await paused(hosted, "careful_code", "Do it.")
    by_kind = {each["kind"]: each for each in requests}
    assert set(by_kind) == {"question", "approve"}
    approve = by_kind["approve"]
    decisions = [
        {"id": by_kind["question"]["id"], "decision": "answer", "text": "The blue one."},
        {"id": approve["id"], "decision": "approve"},
    ]
    await hosted.client.call("agent_decide", {"call_id": call_id, "decisions": decisions})
    # The last call needs an approval too.
    state: dict[str, Any] = {}
    while state.get("state") != "paused" or state["requests"][0]["id"] in {each["id"] for each in requests}:
        state = (await hosted.client.call("call_status", {"call_id": call_id})).structured
        assert state["state"] in {"running", "paused"}
    (last,) = state["requests"]
    value = last["arguments"]["value"]
    assert value == ["The blue one.", approve["arguments"]["value"]]
    await hosted.client.call(
        "agent_decide", {"call_id": call_id, "decisions": [{"id": last["id"], "decision": "reject"}]}
    )
    result = (await ended(hosted, call_id))["result"]
    assert result["answer"]["answer"] == "The blue one."
    assert result["answer"]["written"] is True
    assert [call["outcome"] for call in result["calls"]] == ["ok", "ok", "NOT_APPROVED"]
    assert custom_code.runs == ["careful"] * 3


async def _other_arguments(context: AgentContext) -> str:
    await context.call_tool("echo", {"value": 2})
    return "done"


async def _turn_for_question(context: AgentContext) -> str:
    await context.call_tool("version")
    return "done"


async def _other_question(context: AgentContext) -> str:
    return str(await context.ask("Something else?"))


async def _no_question(_context: AgentContext) -> str:
    return "done"


@pytest.mark.parametrize(
    ("behaves", "says"),
    [
        (_turn_for_question, "step s2 asked a person, and now calls version"),
        (_other_question, "step s2 asked a person something else"),
        (_no_question, "it ended without step s2"),
    ],
)
async def test_code_that_does_not_repeat_its_steps_fails(hosted: Hosted, behaves: Any, says: str) -> None:
    """A resumed run whose code goes another way ends with an error that names the step, not with another answer."""
    call_id, requests = await paused(hosted, "moody", "Go.")
    custom_code.behaviour["before"] = behaves
    decision = {"id": requests[0]["id"], "decision": "answer", "text": "yes"}
    await hosted.client.call("agent_decide", {"call_id": call_id, "decisions": [decision]})
    error = (await ended(hosted, call_id))["error"]
    assert error["code"] == "TOOL_EXECUTION_ERROR"
    assert says in error["message"]


async def test_code_that_another_agent_calls_pauses_both(hosted: Hosted) -> None:
    """The request's id says where it is from, and the code repeats its steps below the other agent."""
    prompt = script(calls(("moody", {"prompt": "Go."})), "both done")
    call_id, (request,) = await paused(hosted, "caller", prompt)
    assert request["id"].startswith("t1.0/s2-")
    decision = {"id": request["id"], "decision": "answer", "text": "yes"}
    await hosted.client.call("agent_decide", {"call_id": call_id, "decisions": [decision]})
    assert (await ended(hosted, call_id))["result"]["answer"] == "both done"
    assert hosted.sent()[0][-1]["content"] == "done"


async def test_an_answer_can_have_files(hosted: Hosted, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that the code returns are blocks of the result; without text, its text and conversation name them. The code
    sees the images of the message, which are bounded.
    """
    images = ["data:image/png;base64,aW1n"]
    result = await hosted.client.call("drawing", {"prompt": "Draw.", "images": images})
    assert [block["type"] for block in result.outputs[:3]] == ["text", "image", "resource_link"]
    assert result.outputs[0]["text"].splitlines()[:2] == ["[image/png]", "[file of 1.pdf]"]
    monkeypatch.setattr(agent_tool, "MAX_IMAGES_BYTES", 25)
    with pytest.raises(InvalidArgumentsError, match="The images have 26 bytes"):
        await hosted.client.call("drawing", {"prompt": "Draw.", "images": images})


async def test_a_cancelled_run_ends_its_code(hosted: Hosted) -> None:
    """Cancelling the call cancels the code and its running step."""
    accepted = await hosted.client.call("waiting", {"prompt": "Wait.", "detach": True})
    call_id = accepted.structured["call_id"]
    await asyncio.wait_for(custom_code.begun.wait(), 30)
    await hosted.client.call("cancel_call", {"call_id": call_id})
    assert (await ended(hosted, call_id))["error"]["code"] == "CANCELLED"
    assert custom_code.runs == ["step cancelled", "code cancelled"]


@pytest.mark.parametrize(
    ("prompt", "says"),
    [
        ("raises", "LookupError"),
        ("exits", r"called sys\.exit\(3\)"),
        ("nothing", "returned no answer"),
        ("no json", r"not JSON: handle is of type object"),
        ("cancels", "cancelled itself"),
        ("unknown tool", "may call 'vresion'. did you mean 'version'"),
        ("unknown role", "named the role 'writr'.*did you mean 'writer'"),
        ("step in step", "code inside a step cannot make steps"),
        ("hangs", "0.3 s"),
    ],
)
async def test_code_that_fails(hosted: Hosted, prompt: str, says: str) -> None:
    """Whatever the code does wrong ends its run with an error that says what."""
    with pytest.raises(CallError, match=says) as raised:
        await hosted.ask("hanging" if prompt == "hangs" else "failing", prompt)
    assert "secret detail" not in raised.value.message


@pytest.mark.parametrize(
    ("agent", "says"),
    [
        ("not_async", "must be an async function"),
        ("no_argument", "must take one argument"),
        ("broken_import", "cannot be imported: ModuleNotFoundError.*acme_nowhere"),
        ("missing", "no installed package has an entry point 'missing' in the group toold.agents"),
    ],
)
async def test_code_that_cannot_be_used(hosted: Hosted, agent: str, says: str) -> None:
    """``dry_run``, and each run, say why the code cannot be used."""
    with pytest.raises(ServiceUnavailableError, match=says):
        await hosted.ask(agent, "x", dry_run=True)


async def test_a_dry_run_names_the_package(hosted: Hosted) -> None:
    """It shows which package's code would run."""
    answer = await hosted.ask("all_steps", "x", dry_run=True)
    assert answer.structured["code"] == {"entry_point": "all_steps", "package": "acme-agents 1.2"}


async def test_the_example_of_the_documentation_runs(hosted: Hosted) -> None:
    """It asks a person about an incident, and the second role reads the answer."""
    call_id, (request,) = await paused(hosted, "helpdesk", script("incident"))
    decision = {"id": request["id"], "decision": "answer", "text": "Ann."}
    await hosted.client.call("agent_decide", {"call_id": call_id, "decisions": [decision]})
    assert (await ended(hosted, call_id))["result"]["answer"] == "incident"
    assert "On duty: Ann." in hosted.sent()[0][-1]["content"]


async def test_the_number_of_steps_is_limited() -> None:
    """Code that makes steps for ever is stopped."""
    steps = AgentSteps("endless", EarlierSteps(), "acme-agents 1.2")

    async def code() -> None:
        for number in itertools.count():
            await steps.begin(f"s{number}")

    with pytest.raises(ToolExecutionError, match=r"stopped after 10,000 steps"):
        await steps.run(asyncio.create_task(code()))


async def test_definitions() -> None:
    """``custom`` is required for this flow, belongs to no other, and cannot come from a registry."""
    base = {"description": "d", "prompt": "p"}
    with pytest.raises(AgentDefinitionError, match="custom: is required for execution_type 'custom'"):
        read_agent("a", {**base, "execution_type": "custom"})
    with pytest.raises(AgentDefinitionError, match="custom: belongs to execution_type custom, not 'single'"):
        read_agent("a", {**base, "custom": "x"})
    record = {"name": "a", "runtime_config": {"execution_type": "custom", "custom": "x", "roles": [{"name": "r"}]}}
    with pytest.raises(AgentDefinitionError, match="a registry's record cannot name code"):
        read_agent("a", record)
