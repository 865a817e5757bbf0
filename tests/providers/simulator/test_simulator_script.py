"""Scripted conversations with the simulator."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio
from toold.providers.simulator import SIMULATOR_KEY, Simulator

pytestmark = pytest.mark.asyncio(loop_scope="module")

TOOLS = [{"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in ("add", "log")]
MODELS = {"kimi": "kimi-k2-0905-preview", "glm": "glm-4.6", "deep": "any-model"}


class ScriptedTalk:
    """One conversation with one vendor, as an agent would have it."""

    def __init__(self, simulator: Simulator, http: httpx.AsyncClient, vendor: str, *, stream: bool) -> None:
        self._post = http.post
        self._url = f"{simulator.base_url(vendor)}/chat/completions"
        self._fields: dict[str, Any] = {"model": MODELS[vendor], "tools": TOOLS, "stream": stream}
        if vendor != "deep":
            self._fields["thinking"] = {"type": "disabled"}
        self.messages: list[dict[str, Any]] = []

    async def send(self, **fields: Any) -> httpx.Response:
        return await self._post(self._url, json={**self._fields, "messages": self.messages, **fields})

    async def turn(self, **fields: Any) -> tuple[str, list[tuple[str, str]], dict[str, Any]]:
        """The text, the calls and the usage of the next turn; its calls get the results ``0``, ``1`` …"""
        response = await self.send(**fields)
        assert response.status_code == 200, response.text
        text, calls, usage = _assembled(response) if self._fields["stream"] else _whole(response.json())
        self.messages.append({"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})})
        for number, call in enumerate(calls):
            self.messages.append({"role": "tool", "tool_call_id": call["id"], "content": str(number)})
        wanted = [(call["function"]["name"], call["function"]["arguments"]) for call in calls]
        return text, wanted, usage

    def say(self, text: str, *items: Any, role: str = "user") -> None:
        script = f" [[sim:script={json.dumps(items)}]]" if items else ""
        self.messages.append({"role": role, "content": text + script})


def _whole(document: Any) -> tuple[str, list[Any], Any]:
    message = document["choices"][0]["message"]
    return message["content"], message.get("tool_calls", []), document["usage"]


def _assembled(response: httpx.Response) -> tuple[str, list[Any], Any]:
    text, calls, usage = "", dict[int, Any](), None
    for line in response.text.splitlines():
        if line in ("", "data: [DONE]"):
            continue
        chunk = json.loads(line.removeprefix("data: "))
        usage = chunk.get("usage") or usage
        for choice in chunk["choices"]:
            usage = choice.get("usage") or usage
            text += choice["delta"].get("content", "")
            for piece in choice["delta"].get("tool_calls", []):
                call = calls.setdefault(piece["index"], {**piece, "function": {"name": "", "arguments": ""}})
                for key, value in piece["function"].items():
                    call["function"][key] += value
    return text, [{key: call[key] for key in ("id", "type", "function")} for call in calls.values()], usage


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def simulator() -> AsyncIterator[Simulator]:
    async with Simulator(providers=["deep"]) as simulator:
        yield simulator


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def http() -> AsyncIterator[httpx.AsyncClient]:
    headers = {"authorization": f"Bearer {SIMULATOR_KEY}"}
    async with httpx.AsyncClient(headers=headers, trust_env=False, timeout=30, verify=False) as client:
        yield client


@pytest.fixture(params=["kimi", "glm", "deep"])
def vendor(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=[False, True], ids=["plain", "streamed"])
def talk(simulator: Simulator, http: httpx.AsyncClient, vendor: str, request: pytest.FixtureRequest) -> ScriptedTalk:
    return ScriptedTalk(simulator, http, vendor, stream=request.param)


async def test_a_script_answers_turn_by_turn(talk: ScriptedTalk) -> None:
    """Each turn gets its item: texts, several calls with any arguments, usage; after the last item, and if the request
    allows no calls, the simulator answers as usual.
    """
    both = [{"name": "add", "arguments": {"a": [[1]]}}, {"name": "gone", "arguments": "{no JSON"}]
    counted = {"input_tokens": 70, "output_tokens": 30, "cached_tokens": 5}
    talk.say("Add.", {"text": "I will.", "calls": both}, {"text": "Done.", "usage": counted}, {"calls": both})
    text, calls, _ = await talk.turn()
    assert (text, calls) == ("I will.", [("add", '{"a": [[1]]}'), ("gone", "{no JSON")])
    text, calls, usage = await talk.turn(stream_options={"include_usage": True})
    assert (text, calls) == ("Done.", [])
    assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == (70, 30, 100)
    assert usage["prompt_tokens_details"] == {"cached_tokens": 5}
    talk.say("And now?")
    text, calls, _ = await talk.turn(tools=[])
    assert (text.startswith("Simulated answer"), calls) == (True, [])
    text, _, _ = await talk.turn()
    assert text.startswith("Simulated answer")


async def test_a_failing_item_fails_once(talk: ScriptedTalk, vendor: str) -> None:
    """The repeated request gets the item without the failure, and the next run of the script fails again; an item with
    ``always`` fails each time.
    """
    talk.say(f"Try, {vendor}.", {"text": "Yes.", "status": 503, "delay_s": 0.001})
    for _ in range(2):
        failed = await talk.send()
        assert (failed.status_code, "error" in failed.json()) == (503, True)
        assert (await talk.send()).status_code == 200
    assert (await talk.send()).status_code == 503
    assert (await talk.turn())[0] == "Yes."
    talk.say("Again.", {"text": "No.", "status": 429, "retry_after": 2, "always": True})
    answers = [await talk.send() for _ in range(2)]
    assert [(answer.status_code, answer.headers["retry-after"]) for answer in answers] == [(429, "2")] * 2


async def test_a_script_stands_in_the_last_user_message_or_the_system_message(
    simulator: Simulator, http: httpx.AsyncClient
) -> None:
    """The last user message with a script counts, from its own turn on; else the system message's, so that each role
    of a flow can have its own; attached files have none.
    """
    talk = ScriptedTalk(simulator, http, "deep", stream=False)
    talk.say("You are a writer.", {"text": "one"}, {"text": "two"}, {"text": "three"}, role="system")
    talk.say("Write.")
    assert (await talk.turn())[0] == "one"
    talk.say('<file name="a.txt">\n[[sim:script=[{"text": "file"}]]]\n</file>\nShorter, please.')
    assert (await talk.turn())[0] == "two"
    talk.say("Otherwise.", {"text": "a"}, {"text": "b"})
    assert (await talk.turn())[0] == "a"
    talk.say("Is it valid?")
    assert (await talk.turn())[0] == "b"
    talk.say("Stop. [[sim:say=ordinary]]")
    assert (await talk.turn())[0] == "Simulated: ordinary"


async def test_unpaired_results_are_refused_in_the_vendors_form(talk: ScriptedTalk, vendor: str) -> None:
    """A result without its call, and a call without its result, get the vendor's 400, streamed or not."""
    talk.say("Add.", {"calls": [{"name": "add"}, {"name": "log"}]})
    await talk.turn()
    whole = talk.messages
    for broken in (whole[:-1], [*whole[:1], *whole[2:]]):
        talk.messages = broken
        refused = await talk.send()
        error = refused.json()["error"]
        code = error["type"] if vendor == "kimi" else error["code"]
        assert (refused.status_code, code) == (400, "1214" if vendor == "glm" else "invalid_request_error")
