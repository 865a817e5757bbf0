"""The rule for the default model, and the models that the operator allows."""

import datetime as dt
from dataclasses import replace
from typing import Any

import pytest
from toold.protocol.error_codes import InvalidArgumentsError
from toold.providers import Model, ModelCatalog, ModelPrice, best_value, price_text, restrict

DATE = dt.date(2026, 1, 1)
CAPABLE = Model(
    "capable", "glm", 200_000, "https://example.org", DATE, thinking="switch", structured="object",
    price=ModelPrice("USD", 1.0, 4.0), default=True,
)  # fmt: skip


def named(name: str, **changes: Any) -> Model:
    return replace(CAPABLE, **{"id": name, "default": False, **changes})


def test_the_best_value_is_the_cheapest_capable_model() -> None:
    """By the price of a typical call; of two equally cheap models, the one with the larger window."""
    cheaper = named("cheaper", price=ModelPrice("USD", 1.5, 0.5))
    larger = named("larger", price=ModelPrice("USD", 1.0, 4.0), context_window=400_000)
    assert best_value([CAPABLE, larger]) is larger
    assert best_value([larger, named("yuan", price=ModelPrice("CNY", 1.0, 4.0))]).id == "yuan"  # type: ignore[union-attr]
    assert best_value([CAPABLE, cheaper, named("dear", price=ModelPrice("USD", 9.0, 0.0))]) is CAPABLE


@pytest.mark.parametrize(
    "changes",
    [
        {"tools": False},
        {"thinking": "none"},
        {"structured": "none"},
        {"context_window": 64_000},
        {"max_output": 4_096},
        {"retired": dt.date(2099, 1, 1)},
        {"price": None},
    ],
)
def test_a_model_that_lacks_something_is_no_default(changes: dict[str, Any]) -> None:
    """Whatever it costs; a planned retirement counts."""
    free = named("free", **{"price": ModelPrice("USD", 0.0, 0.0), **changes})
    assert best_value([free, CAPABLE]) is CAPABLE
    assert best_value([free]) is None


def test_a_price_is_told_in_words() -> None:
    """For the start message and the doctor."""
    assert price_text(CAPABLE.price) == "1 in, 4 out USD per million tokens"
    assert (price_text(ModelPrice("USD", 0, 0)), price_text(None)) == ("free", "price unknown")


def test_a_model_that_is_not_allowed_is_refused_by_name() -> None:
    """It is not in the list, and the error names the allowed models; other providers are not restricted."""
    other = replace(CAPABLE, id="other", provider="kimi")
    catalog = ModelCatalog([CAPABLE, named("cheap", price=ModelPrice("USD", 0.1, 0.1)), named("dear"), other])
    restricted = restrict(catalog, {"glm": ("dear", "cheap"), "kimi": ()})
    assert [model.id for model in restricted.models] == ["cheap", "dear", "other"]
    assert restricted.default("glm").id == "cheap"
    with pytest.raises(InvalidArgumentsError, match="allow capable; the allowed models of glm are cheap, dear"):
        restricted.resolve("Capable")
    with pytest.raises(InvalidArgumentsError, match="Unknown model"):
        restricted.resolve("nothing")
    assert restrict(catalog, {"glm": (), "kimi": ()}) is catalog
