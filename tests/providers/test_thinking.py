"""How the thinking depth is sent to each vendor."""

from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.protocol.error_codes import InvalidArgumentsError
from toold.providers import Depth, Model, ModelCatalog
from toold.providers.thinking import check_thinking, thinking_fields

SHIPPED = ModelCatalog.load()
ANY: Model = replace(SHIPPED.resolve("kimi-k3"), id="m")
NEVER = replace(ANY, thinking="none", efforts=())
SWITCH = replace(ANY, thinking="switch", efforts=())
ALWAYS = replace(ANY, thinking="always", efforts=())
DEGREES = replace(ANY, thinking="always", efforts=("low", "high", "max"))
BOTH = replace(ANY, thinking="switch", efforts=("high", "max"))


@pytest.mark.parametrize(
    ("model", "wanted", "sent"),
    [
        (NEVER, None, {}),
        (NEVER, False, {}),
        (NEVER, "minimal", {}),
        (SWITCH, None, {}),
        (SWITCH, True, {"thinking": {"type": "enabled"}}),
        (SWITCH, False, {"thinking": {"type": "disabled"}}),
        (SWITCH, "minimal", {"thinking": {"type": "disabled"}}),
        (SWITCH, "max", {"thinking": {"type": "enabled"}}),
        (ALWAYS, True, {}),
        (ALWAYS, "max", {}),
        (DEGREES, True, {}),
        (DEGREES, "low", {"reasoning_effort": "low"}),
        (BOTH, True, {"thinking": {"type": "enabled"}}),
        (BOTH, "minimal", {"thinking": {"type": "disabled"}}),
        (BOTH, "high", {"thinking": {"type": "enabled"}, "reasoning_effort": "high"}),
    ],
)
def test_thinking_is_sent_in_the_vendors_fields(model: Model, wanted: Any, sent: dict[str, Any]) -> None:
    """The body has the switch if the model has one and the effort if it has several, and no field for default
    behaviour.
    """
    check_thinking(model, wanted)
    assert thinking_fields(model, wanted) == sent


@pytest.mark.parametrize(
    ("model", "wanted", "nearest"),
    [
        (DEGREES, "low", "low"),
        (DEGREES, "medium", "high"),
        (BOTH, "low", "high"),
        (BOTH, "medium", "high"),
        (SWITCH, "low", "max"),
        (ALWAYS, "medium", "max"),
        (replace(ANY, efforts=("low", "max")), "medium", "low"),
        (replace(ANY, efforts=("low", "max")), "high", "max"),
        (BOTH, "minimal", "minimal"),
        (DEGREES, "minimal", None),
        (NEVER, "medium", None),
        (NEVER, "minimal", "minimal"),
    ],
)
def test_nearest_depth_never_switches_thinking(model: Model, wanted: Any, nearest: Any) -> None:
    """The nearest depth never switches thinking on or off. If two depths are equally near, the deeper one is chosen."""
    assert model.nearest_depth(wanted) == nearest


@pytest.mark.parametrize(
    ("model", "wanted", "words"),
    [
        (NEVER, True, "m cannot think"),
        (NEVER, "max", "omit thinking, or use 'minimal'"),
        (ALWAYS, False, "m always thinks"),
        (ALWAYS, "minimal", "supported: 'max'"),
        (SWITCH, "medium", "supported: 'minimal', 'max'"),
        (DEGREES, "medium", "supported: 'low', 'high', 'max'"),
        (BOTH, "low", "supported: 'minimal', 'high', 'max'"),
    ],
)
def test_unsupported_depth_is_refused_with_the_supported_ones(model: Model, wanted: Any, words: str) -> None:
    """Vendors replace or ignore unknown depths. Here they raise an error that lists the supported depths."""
    with pytest.raises(InvalidArgumentsError) as caught:
        check_thinking(model, wanted)
    assert words in caught.value.message
    assert (caught.value.details or {})["fields"] == {"thinking": caught.value.message}


@given(st.sampled_from(SHIPPED.models), st.sampled_from(get_args(Depth)))
def test_shipped_models_accept_exactly_their_depths(model: Model, depth: Depth) -> None:
    """A depth is either supported by the model or refused, and each supported depth is sent differently."""
    if depth not in model.depths:
        with pytest.raises(InvalidArgumentsError):
            check_thinking(model, depth)
        return
    check_thinking(model, depth)
    sent = [thinking_fields(model, depth) for depth in model.depths]
    assert [thinking_fields(model, depth)] == [fields for fields in sent if fields == thinking_fields(model, depth)]
