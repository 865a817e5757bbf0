"""One role of an agent: turns, tool calls, errors that the model reads, structured answers, and conversations."""

import asyncio
import json
from unittest.mock import Mock

import pytest
from toold.prompts.prompt_settings import PromptServerSettings, PromptSettings
from toold.protocol.error_codes import InvalidArgumentsError, ProviderError, RateLimitedError, ServiceUnavailableError
from toold.protocol.tool_call import LOCAL, Principal
from toold.tools import PromptError, PromptQuery, ResolvedPrompt
from toold.tools.agents import read_agent
from toold.tools.agents.agent_snapshot import make_snapshot

from .hosted import Hosted, calls, script

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_calls_of_a_turn_run_and_the_model_reads_their_results(hosted: Hosted) -> None:
    """Several calls of one turn are made, and the next request has one result per call in the model's order."""
    prompt = script(calls(("echo", {"value": "one"}), ("version", {})), "both done")
    answer = await hosted.ask("helper", prompt)
    assert answer.structured["answer"] == "both done"
    assert answer.structured["turns"] == 2
    assert [(call["tool"], call["id"], call["outcome"]) for call in answer.structured["calls"]] == [
        ("echo", "t1.0", "ok"),
        ("version", "t1.1", "ok"),
    ]
    (messages,) = hosted.sent()
    wanted = [call["id"] for call in messages[2]["tool_calls"]]
    results = [(row["tool_call_id"], row["content"]) for row in messages[3:]]
    assert [identifier for identifier, _ in results] == wanted
    assert "one" in results[0][1]


@pytest.mark.parametrize(
    ("wanted", "reads"),
    [
        (("ehco", {}), "did you mean 'echo'?"),
        (("echo", "{no json"), "the arguments are not JSON"),
        (("echo", "[]"), "the arguments are not a JSON object"),
        (("echo", {"txet": 1}), "VALIDATION_ERROR"),
        (("status", {"recent": -1}), "VALIDATION_ERROR"),
    ],
)
async def test_a_wrong_call_is_a_message_to_the_model(hosted: Hosted, wanted: tuple[str, object], reads: str) -> None:
    """An unknown tool or wrong arguments do not end the run: the model reads the error and continues."""
    answer = await hosted.ask("helper", script(calls(wanted), "went on"))
    assert answer.structured["answer"] == "went on"
    (messages,) = hosted.sent()
    assert reads in messages[-1]["content"]
    assert answer.structured["calls"][0]["outcome"] != "ok"


async def test_the_last_turn_has_to_answer(hosted: Hosted) -> None:
    """After ``max_turns`` turns the model may call no more tools and answers with what it has."""
    again = calls(("version", {}))
    answer = await hosted.ask("helper", script(again, again, again))
    assert (answer.structured["state"], answer.structured["stopped_by"]) == ("stopped", "max_turns")
    assert answer.structured["turns"] == 4
    assert "no turns left" in hosted.sent()[0][-1]["content"]


async def test_calls_beyond_those_listed_are_counted(hosted: Hosted) -> None:
    """An answer lists the first 200 calls and says how many more there were."""
    many = calls(*[("nothing", {})] * 120)
    answer = await hosted.ask("helper", script(many, many, "done"))
    assert (len(answer.structured["calls"]), answer.structured["unlisted_calls"]) == (200, 40)


async def test_a_failed_turn_is_repeated(hosted: Hosted) -> None:
    """A vendor's outage in the middle of a run costs one more attempt, not the run."""
    item = {"text": "recovered", "status": 500}
    answer = await hosted.ask("helper", script(calls(("version", {})), item))
    assert answer.structured["answer"] == "recovered"


async def test_a_vendor_that_refuses_ends_the_run_and_not_the_conversation(hosted: Hosted) -> None:
    """After a run that failed in the middle, the next message of the conversation works."""
    first = await hosted.ask("helper", script("hello"))
    conversation = first.structured["continuation_id"]
    with pytest.raises(ProviderError, match="role main"):
        await hosted.ask(
            "helper",
            script(calls(("version", {})), {"status": 400, "always": True}),
            continuation_id=conversation,
        )
    answer = await hosted.ask("helper", "And now?", continuation_id=conversation)
    assert answer.structured["state"] == "done"
    (messages,) = hosted.sent()
    assert [row["role"] for row in messages] == ["system", "user", "assistant", "user"]


async def test_a_structured_answer_is_corrected(hosted: Hosted) -> None:
    """An answer that does not match the schema goes back to the model with what is wrong."""
    answer = await hosted.ask("extractor", script("Bern", '```json\n{"city": "Bern"}\n```'))
    assert answer.structured["answer"] == {"city": "Bern"}
    assert "does not match" in hosted.sent()[0][-1]["content"]


async def test_a_structured_answer_that_stays_wrong_is_an_error(hosted: Hosted) -> None:
    """After ``answer_retries`` corrections the run fails, and says why."""
    with pytest.raises(ProviderError, match="city"):
        await hosted.ask("extractor", script('{"town": 1}', '{"town": 2}', '{"city": "late"}'))


async def test_a_missing_tool_is_named(hosted: Hosted) -> None:
    """An agent whose tool is not there does not run; the error names agent, role, tool and a similar name."""
    with pytest.raises(ServiceUnavailableError, match=r"agent broken: roles\.main\.tools: .*'ehco'.*'echo'"):
        await hosted.ask("broken", "hello")


async def test_an_agent_is_a_tool_of_another(hosted: Hosted) -> None:
    """The called agent's turns are children of the call, and its answer is the result that the caller's model reads."""
    inner = script(calls(("version", {})), "inner answer")
    answer = await hosted.ask("manager", script(calls(("helper", {"prompt": inner})), "outer answer"))
    assert answer.structured["answer"] == "outer answer"
    assert "inner answer" in hosted.sent()[0][-1]["content"]
    activity = await hosted.client.call("activity", {})
    ids = [call["id"] for session in activity.structured["sessions"] for call in session["calls"]]
    assert any(identifier.endswith("/t1.0/t1.0") for identifier in ids)


async def test_hidden_tools_are_in_no_listing(hosted: Hosted) -> None:
    """Clients can neither list nor call the tools behind turns, roles and snapshots."""
    names = {tool.name for tool in await hosted.client.list_tools()}
    assert "helper" in names
    assert not names & {"agent_turn", "agent_role", "agent_snapshot"}
    with pytest.raises(Exception, match="agent_turn"):
        await hosted.client.call("agent_turn", {"agent": "helper", "role": "main", "messages": []})


async def test_unknown_arguments_are_refused(hosted: Hosted) -> None:
    """An agent's arguments are checked like every tool's."""
    with pytest.raises(InvalidArgumentsError, match="prompt"):
        await hosted.client.call("helper", {"promt": "x"})


async def test_a_detached_run_is_answered_later(hosted: Hosted) -> None:
    """``detach`` returns a call id at once; the answer is the call's result."""
    accepted = await hosted.ask("helper", script("later"), detach=True)
    call_id = accepted.structured["call_id"]
    result = await hosted.client.call("call_result", {"call_id": call_id})
    while "result" not in result.structured:
        await asyncio.sleep(0.05)
        result = await hosted.client.call("call_result", {"call_id": call_id})
    assert "later" in json.dumps(result.structured["result"])


async def test_a_prompt_of_a_file_is_filled_in(hosted: Hosted) -> None:
    """The variables are the role's metadata and those of the call; a missing one is an error that names it. A model
    that the prompt names and that cannot be asked is a warning."""
    (hosted.directory / "prompts").mkdir(exist_ok=True)
    prompt = hosted.directory / "prompts/reading.md"
    prompt.write_text("Be {{tone}} about {{topic}}.\n")
    await hosted.ask("reader", script("done"), variables={"topic": "law"})
    (messages,) = hosted.sent()
    assert messages[0]["content"].startswith("Be calm about law.")
    with pytest.raises(
        ServiceUnavailableError, match="the variable 'topic', which has no value; known variables: tone"
    ):
        await hosted.ask("reader", script("done"))
    prompt.write_text("---\nmodel: gpt-4o\n---\nA prompt for another model.\n")
    answer = await hosted.ask("reader", script("done"))
    (warning,) = answer.structured["warnings"]
    assert warning.startswith("glm-")
    assert " is used instead of the model that the prompt names: " in warning
    assert "Unknown model 'gpt-4o'" in warning


async def test_a_run_that_waits_for_its_prompt_holds_no_permit(hosted: Hosted) -> None:
    """A prompt server that hangs takes no permits from other calls, however many runs ask it."""
    asked, done = asyncio.Event(), asyncio.Event()

    async def hang(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.set()
        await done.wait()
        writer.close()

    async with await asyncio.start_server(hang, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        registry = PromptServerSettings(url=url, timeout_s=60, allow_private=True)
        hosted.daemon.prompts.apply(PromptSettings(registry=registry, folder=hosted.directory / "prompts"))
        runs = [asyncio.create_task(hosted.ask("reader", "wait")) for _ in range(3)]
        await asked.wait()
        assert hosted.daemon.router.permits.in_use == 0
        hosted.daemon.prompts.apply(PromptSettings(folder=hosted.directory / "prompts"))
        done.set()
        await asyncio.wait(runs)
        assert hosted.daemon.router.permits.in_use == 0


async def test_a_run_stops_before_it_exceeds_its_tokens(hosted: Hosted) -> None:
    """The request that would exceed ``max_tokens`` is not sent; the run fails and says why."""
    before = len(hosted.simulator.log)
    used = {**calls(("version", {})), "usage": {"input_tokens": 8000, "output_tokens": 900}}
    with pytest.raises(RateLimitedError, match="frugal"):
        await hosted.ask("frugal", script(used, "too late"))
    assert len(hosted.simulator.log) == before + 1


async def test_a_run_without_money_asks_nothing(hosted: Hosted) -> None:
    """A run whose budget is less than its first turn costs sends no request."""
    before = len(hosted.simulator.log)
    with pytest.raises(RateLimitedError, match="poor"):
        await hosted.ask("poor", script("too dear"))
    assert len(hosted.simulator.log) == before


async def test_a_dry_run_resolves_and_asks_no_model(hosted: Hosted) -> None:
    """``dry_run`` returns model, prompt and functions of each role."""
    before = len(hosted.simulator.log)
    answer = await hosted.ask("desk", "check", dry_run=True)
    lead = answer.structured["roles"]["lead"]
    assert (lead["prompt"], lead["functions"], lead["prompt_source"]) == ("Lead.", ["delegate_to_clerk"], "inline")
    assert len(hosted.simulator.log) == before


async def test_the_model_of_a_role_precedes_the_prompts_and_that_the_agents(hosted: Hosted) -> None:
    """A role without a model has the one that its prompt names, and else the agent's."""
    (hosted.directory / "prompts").mkdir(exist_ok=True)
    (hosted.directory / "prompts/naming.md").write_text("---\nmodel: glm-4.6\n---\nBe named.\n")
    answer = await hosted.ask("models", "check", dry_run=True)
    models = {name: role["model"] for name, role in answer.structured["roles"].items()}
    assert models == {"own": "glm-4.7-flash", "named": "glm-4.6", "shared": "kimi-k2.6"}


async def test_a_role_chooses_the_tag_of_its_prompt() -> None:
    """Its prompt is asked for with ``prompt_tag``."""

    class Refusing:
        async def resolve(self, role: PromptQuery) -> ResolvedPrompt:
            raise PromptError(f"{role.ref} has no tag {role.tag}")

    agent = read_agent("staged", {"description": "d", "prompt_ref": "p", "prompt_tag": "staging"})
    with pytest.raises(ServiceUnavailableError, match="p has no tag staging"):
        await make_snapshot(agent, {}, (), Refusing(), Mock(principal=LOCAL))


async def test_an_agent_passes_only_a_task_to_another(hosted: Hosted) -> None:
    """A model cannot set an agent's other arguments, such as ``dry_run`` and ``continuation_id``."""
    wanted = {"prompt": script("inner answer"), "dry_run": True, "continuation_id": "0" * 32}
    await hosted.ask("manager", script(calls(("helper", wanted)), "outer answer"))
    assert "inner answer" in hosted.sent()[0][-1]["content"]


async def test_an_empty_answer_is_an_error(hosted: Hosted) -> None:
    """A model that answers nothing does not end the run as done, and adds no empty turn to the conversation."""
    with pytest.raises(ProviderError, match="answered without text"):
        await hosted.ask("helper", script({"text": ""}))


async def test_paths_are_shown_to_operators_only(hosted: Hosted) -> None:
    """If a prompt is missing, only a caller with the operator right reads where it was searched."""
    for principal, has_path in ((LOCAL, True), (Principal("ann"), False)):
        context = Mock(principal=principal, toolset_view=Mock(tools={}))
        agent = read_agent("lost", {"description": "d", "prompt_ref": "nowhere"})
        with pytest.raises(ServiceUnavailableError) as raised:
            await make_snapshot(agent, {}, (), hosted.daemon.prompts, context)
        assert (str(hosted.directory) in raised.value.message) is has_path
