"""``listmodels`` lists the catalog and shows which models are available."""

import datetime as dt
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from toold.protocol.error_codes import InvalidArgumentsError
from toold.providers import ModelCatalog
from toold.tools import ToolOutput, bind, content
from toold.tools.builtin.listmodels import listmodels

if TYPE_CHECKING:
    from tests.tools.tool_context import Context


async def run(context: "Context", **arguments: Any) -> ToolOutput:
    answer = await listmodels.function(bind(listmodels, arguments), context)
    assert isinstance(answer, ToolOutput)
    return answer


async def test_every_model_is_listed_with_what_is_known(context: "Context") -> None:
    """Window, output limit, inputs, thinking and its depths, web search, price, aliases and source, as JSON."""
    data: Any = content(await run(context), tool="listmodels")[1]
    assert data["default"] == "kimi-see"
    assert [model["id"] for model in data["models"]] == ["kimi-see", "kimi-small", "glm-muse", "glm-gone"]
    assert data["models"][1] == {
        "id": "kimi-small",
        "provider": "kimi",
        "available": True,
        "listed": None,
        "missing": None,
        "kind": "chat",
        "context_window": 8000,
        "max_output": 4000,
        "inputs": ["text"],
        "thinking": "none",
        "depths": ["minimal"],
        "tools": True,
        "web_search": False,
        "price_per_million": {"currency": "USD", "input": 1.0, "output": 4.0, "cached_input": None},
        "aliases": ["small"],
        "retired": None,
        "note": "",
        "source": "https://example.com/models",
        "date": "2026-01-01",
    }


async def test_the_text_has_one_line_per_model(context: "Context") -> None:
    lines = str((await run(context)).text).splitlines()
    assert lines[0] == (
        "kimi-see (kimi); the default; 200,000 tokens; inputs: text, image; thinking optional: minimal, max; web search"
    )
    assert lines[1] == (
        "kimi-small (kimi); 8,000 tokens; output up to 4,000; inputs: text; 1 in, 4 out USD per million tokens; "
        "aliases: small"
    )
    assert "; thinking always on: " in lines[2]
    assert lines[3].endswith("retired 2020-01-01")


async def test_a_future_retirement_is_reported_as_such(context: "Context") -> None:
    first, *others = context.daemon.catalog.models
    context.daemon.catalog = ModelCatalog((replace(first, retired=dt.date(9999, 1, 1)), *others))
    lines = str((await run(context)).text).splitlines()
    assert lines[0].endswith("; retires 9999-01-01")
    assert lines[3].endswith("; retired 2020-01-01")


async def test_models_are_filtered_by_provider(context: "Context") -> None:
    assert [model["id"] for model in (await run(context, provider="glm")).data["models"]] == ["glm-muse", "glm-gone"]


async def test_models_without_a_key_are_unavailable(context: "Context") -> None:
    """``missing`` says which key to set."""
    context.daemon.available = []
    answer = await run(context, provider="kimi")
    assert answer.data["default"] is None
    assert [(model["available"], model["missing"]) for model in answer.data["models"]] == [
        (False, "set KIMI_API_KEY")
    ] * 2
    assert "unavailable: set KIMI_API_KEY" in str(answer.text)


async def test_an_unknown_provider_is_rejected(context: "Context") -> None:
    """The error suggests a provider with a similar name."""
    with pytest.raises(InvalidArgumentsError, match=r"^Unknown provider 'glmm'; did you mean 'glm'\?$"):
        await run(context, provider="glmm")


async def test_the_vendors_list_decides_availability(context: "Context") -> None:
    """An unlisted Kimi model is unavailable, because Kimi lists all models; GLM does not."""
    context.daemon.lists = {"kimi-see"}
    rows = {row["id"]: row for row in (await run(context)).data["models"]}
    assert [(row["listed"], row["available"]) for row in rows.values()] == [
        (True, True),
        (False, False),
        (False, True),
        (False, True),
    ]
    assert rows["kimi-small"]["missing"] == "KIMI does not list it for the API key in use"
    lines = str((await run(context)).text).splitlines()
    assert lines[0].endswith("web search; listed by the vendor")
    assert lines[1].endswith("not listed by the vendor; unavailable: KIMI does not list it for the API key in use")
