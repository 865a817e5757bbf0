"""``apilookup`` asks a model that searches the web, with the date and instructions to prefer current pages."""

import datetime as dt
from typing import TYPE_CHECKING

from toold.providers import WebSearch
from toold.tools import ToolOutput, bind
from toold.tools.builtin.apilookup import apilookup

if TYPE_CHECKING:
    from tests.tools.tool_context import Context


async def test_a_model_searches_the_web_for_what_is_current(context: "Context") -> None:
    """One completion with web search; the instructions have today's date, and follow-up prompts continue it."""
    answer = await apilookup.function(bind(apilookup, {"prompt": "The latest pydantic"}), context)
    assert isinstance(answer, ToolOutput)
    follow_up = {"prompt": "And its validators?", "continuation_id": answer.data["continuation_id"]}
    await apilookup.function(bind(apilookup, follow_up), context)
    first, second = context.requests
    assert WebSearch() in first.tools
    assert f"Today is {dt.datetime.now(dt.UTC).date()}" in str(first.messages[0].content)
    assert [message.role for message in second.messages] == ["system", "user", "assistant", "user"]
