"""Options that the named model does not support: without effect for clients of earlier servers, refused for others."""

from typing import TYPE_CHECKING, Any

import pytest
from toold.protocol.error_codes import InvalidArgumentsError
from toold.providers import Message
from toold.tools.completions import ModelQuestion, ask, supported_question

if TYPE_CHECKING:
    from tests.tools.tool_context import Context

IMAGE = "data:image/png;base64,AA=="
OPTIONS: dict[str, Any] = {"web_search": True, "thinking": "high", "temperature": 0.3}


async def test_former_clients_get_an_answer_without_the_option(context: "Context") -> None:
    """Each option without effect has a notice; what the model supports is kept."""
    context.former_client = True
    await ask(ModelQuestion("Why?", model="small", **OPTIONS), context)
    (request,) = context.requests
    assert (request.tools, request.thinking, request.temperature) == ((), None, 0.3)
    assert context.notices == [
        "web_search is ignored: kimi-small cannot search the web.",
        "thinking is ignored: kimi-small does not think.",
    ]


async def test_a_search_precedes_thinking(context: "Context") -> None:
    """A model that does not think during a web search searches."""
    context.former_client = True
    question = supported_question(ModelQuestion("Why?", model="kimi-see", **OPTIONS), context)
    assert (question.web_search, question.thinking) == (True, None)


async def test_other_clients_are_refused(context: "Context") -> None:
    """They can send another request, and the error names models; nothing is asked."""
    with pytest.raises(InvalidArgumentsError, match="kimi-small does not think"):
        await ask(ModelQuestion("Why?", model="small", **OPTIONS), context)
    assert not context.requests


async def test_each_answer_without_its_images_says_so(context: "Context") -> None:
    """It may be wrong without them."""
    context.former_client = True
    await ask(ModelQuestion("Why?", model="small", images=(IMAGE,)), context)
    assert context.requests[0].messages == (Message("user", "Why?"),)
    assert context.notices == ["images are ignored: kimi-small does not accept images."]


@pytest.mark.parametrize("model", [None, "auto"])
def test_without_a_named_model_nothing_is_dropped(context: "Context", model: str | None) -> None:
    """A model is chosen that supports everything."""
    context.former_client = True
    question = ModelQuestion("Why?", model=model, **OPTIONS)
    assert supported_question(question, context) == question


async def test_the_depth_does_not_choose_the_model_of_former_clients(context: "Context") -> None:
    """Earlier servers asked the default model at its own depth; a model with more depths may cost more."""
    question = ModelQuestion("Why?", model="auto", thinking="low")
    assert (await ask(question, context)).model.id == "glm-muse"
    context.former_client = True
    assert (await ask(question, context)).model.id == "kimi-see"
