"""``embed``: its inputs, models and budget."""

from typing import Any

import pytest
from toold.protocol.error_codes import InvalidArgumentsError, RateLimitedError
from toold.protocol.tool_call import Usage
from toold.providers import MAX_INPUTS
from toold.providers.simulator import Simulator
from toold.testing import daemon_under_test
from toold.tools.builtin.embed import read_inputs


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ("a", ("a",)),
        (["a", "b"], ("a", "b")),
        ([1, 2], ((1, 2),)),
        ([[1], [2, 3]], ((1,), (2, 3))),
    ],
)
def test_inputs_are_texts_or_tokens(value: Any, read: Any) -> None:
    """A single text, or the tokens of one, count as a list of one."""
    assert read_inputs(value) == read


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ([], "is empty"),
        (None, "must be a text"),
        ({"text": "a"}, "must be a text"),
        ("", "item 0 is empty"),
        (["a", ""], "item 1 is empty"),
        ([[1], []], "item 1 is empty"),
        (["a", 1], "item 1 is not a text"),
        ([[1], "a"], "item 1 is neither"),
        ([[1], [-1]], "item 1 is neither"),
        ([[1.5]], "item 0 is neither"),
        ([True], "item 0 is neither"),
        (["a"] * (MAX_INPUTS + 1), "at most 2,048"),
    ],
)
def test_other_inputs_are_refused(value: Any, says: str) -> None:
    """The message names the item."""
    with pytest.raises(ValueError, match=says):
        read_inputs(value)


async def test_models_and_budgets() -> None:
    """A chat model, ``auto`` and a chat with an embedding model are refused with suggestions; a budget counts the
    tokens by the price, and a provider with a budget refuses a model without one.
    """
    async with Simulator(providers=("acme",)) as vendor:
        table = {"BASE_URL": vendor.base_url("acme"), "API_KEY": "sim-key", "SDK": "http", "DAILY_BUDGET": "1 USD"}
        env = {f"TOOLD_PROVIDERS__ACME__{name}": value for name, value in table.items()}
        async with daemon_under_test(env=env) as daemon:
            call = daemon.client.call
            for model, says in (("glm-4.6", "makes completions, not embeddings"), ("auto", "cannot be compared")):
                with pytest.raises(InvalidArgumentsError, match=says) as error:
                    await call("embed", {"model": model, "input": "a"})
                assert (error.value.details or {})["models"] == ["embedding-3"]
            with pytest.raises(InvalidArgumentsError, match="makes embeddings, not completions; use a model that does"):
                await call("chat", {"model": "embedding-3", "prompt": "a"})
            rows = (await call("listmodels", {"provider": "glm"})).structured["models"]
            assert [row["id"] for row in rows if row["kind"] == "embedding"] == ["embedding-3"]
            answer = await call("embed", {"model": "embedding-3", "input": ["One.", "Two words."], "dimensions": 3})
            assert [len(vector) for vector in answer.structured["embeddings"]] == [3, 3]
            assert (answer.metadata.usage, answer.metadata.simulated) == (Usage(4, 0), True)
            with pytest.raises(RateLimitedError, match=r'sets price in \[models."acme/small"\]'):
                await call("embed", {"model": "acme/small", "input": "a"})
