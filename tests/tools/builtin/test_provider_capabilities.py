"""``provider_capabilities`` lists what each provider supports."""

from typing import TYPE_CHECKING

import pytest
from toold.protocol.error_codes import InvalidArgumentsError
from toold.tools import bind
from toold.tools.builtin.provider_capabilities import provider_capabilities

if TYPE_CHECKING:
    from tests.tools.tool_context import Context


async def test_abilities_list_their_models(context: "Context") -> None:
    """Each provider has its state, and each capability lists its models."""
    context.daemon.available = ["kimi"]
    kimi, glm = await provider_capabilities.function(bind(provider_capabilities, {}), context)
    assert (kimi["available"], glm["available"], glm["missing"]) == (True, False, "set GLM_API_KEY")
    assert (kimi["images"], kimi["thinking"]) == (["kimi-see"], ["kimi-see"])
    assert (kimi["functions"], kimi["web_search"]) == (["kimi-see", "kimi-small"], ["kimi-see"])
    assert (glm["default_model"], glm["largest_context_window"]) == ("glm-muse", 2_000_000)


async def test_provider_argument_filters_the_list(context: "Context") -> None:
    """``provider`` omits the other provider."""
    rows = await provider_capabilities.function(bind(provider_capabilities, {"provider": "glm"}), context)
    assert [row["name"] for row in rows] == ["glm"]


def test_invalid_arguments_are_refused() -> None:
    """The error names an unknown provider and an unknown argument."""
    with pytest.raises(InvalidArgumentsError, match=r"provider should be .*; nme is not an argument"):
        bind(provider_capabilities, {"provider": 1, "nme": "kimi"})
