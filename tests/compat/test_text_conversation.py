"""A conversation of ten turns across tools, by a client that reads nothing but texts."""

import json
from typing import Any

import pytest
from tests.compat.conftest import Successor, WebSocketClient
from tests.compat.exai_calls import FILE
from tests.compat.old_calls import filled

VIEWS = [{"model": "glm-4.6", "stance": "for"}, {"model": "kimi-k2-0905-preview", "stance": "against"}]
REVIEW = {"relevant_files": [FILE], "findings": "None yet.", "model": "glm-4.6"}


def step(number: int, of: int, **arguments: Any) -> dict[str, Any]:
    return {"step_number": number, "total_steps": of, "next_step_required": number < of, **arguments}


NOTE = step(2, 2, step="The second view.", findings="It is one lock too many.", models=VIEWS)
"""Its findings are for the synthesis; the conversation keeps the question and the synthesis."""
TURNS: list[tuple[str, dict[str, Any]]] = [
    ("chat", {"prompt": "The shelf belongs to a harbour.", "files": [FILE], "use_websearch": False}),
    ("chat", {"prompt": "Who owns it?", "use_websearch": False}),
    ("codereview", step(1, 3, step="Review the shelf.", **REVIEW)),
    ("codereview", step(2, 3, step="Read its locks.", **REVIEW)),
    ("codereview", step(3, 3, step="The lock is never released.", **REVIEW)),
    ("consensus", step(1, 2, step="Should the lock be removed?", findings="It is not needed.", models=VIEWS)),
    ("consensus", NOTE),
    ("chat", {"prompt": "What did they agree on?", "use_websearch": False}),
    ("codereview", step(1, 1, step="Review it once more.", **REVIEW)),
    ("chat", {"prompt": "Sum it up.", "model": "glm-4.6", "use_websearch": False}),
]


def continuation_id(texts: tuple[str, ...]) -> str:
    """The id in the first text, the predecessors' JSON."""
    answer: dict[str, Any] = json.loads(texts[0])
    assert answer["content"]
    return str(answer["continuation_id"])


@pytest.mark.asyncio(loop_scope="module")
async def test_ten_turns_by_their_texts(successor: Successor) -> None:
    """Each answer's text has the id that continues the conversation; the last request has what all turns said."""
    async with successor.websocket() as client:
        texts = await conversation(client, successor.places)
    assert len(texts) == len(TURNS) == 10
    asked = [json.dumps(request.body) for request in successor.simulator.log]
    said = [arguments.get("prompt") or arguments["step"] for _, arguments in TURNS if arguments is not NOTE]
    assert [text for text in said if text not in asked[-1]] == []
    assert any(NOTE["findings"] in text for text in asked)


async def conversation(client: WebSocketClient, places: dict[str, str]) -> list[tuple[str, ...]]:
    """The texts of the answers."""
    texts: list[tuple[str, ...]] = []
    for tool, arguments in TURNS:
        continued = {"continuation_id": continuation_id(texts[0])} if texts else {}
        answer = await client.call(tool, {**filled(arguments, places), **continued})
        assert answer.error is None, (tool, answer.error)
        texts.append(answer.texts)
        assert continuation_id(answer.texts) == continuation_id(texts[0]), tool
    return texts
