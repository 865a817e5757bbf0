"""Whether a request fits a model: the estimate and its use."""

import datetime as dt
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from toold.protocol.errors import ContextLengthExceededError
from toold.providers import ImagePart, Message, TextPart
from toold.tools.model_fit import estimate_tokens, require_room, texts_of, usable_models

if TYPE_CHECKING:
    from tests.tools.conftest import Context


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("abcd" * 10, 10), ("模型" * 10, 15), ("\ud800", 0)])
def test_four_bytes_are_a_token(text: str, tokens: int) -> None:
    """Four letters are a token, four Chinese characters three."""
    assert estimate_tokens([text]) == tokens


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.text()))
def test_texts_add_up(texts: list[str]) -> None:
    """Many texts are estimated like one: nothing is lost by rounding each."""
    assert estimate_tokens(texts) == estimate_tokens(["".join(texts)])


def test_images_are_not_estimated() -> None:
    """Of a message with images only the text counts."""
    messages = [Message("system", "a"), Message("user", (TextPart("b"), ImagePart("data:image/png;base64,AA==")))]
    assert list(texts_of(messages)) == ["a", "b"]


def test_a_retired_model_is_usable_until_its_day(context: "Context") -> None:
    """A model that the vendor switches off is no longer offered from that day on."""
    before = usable_models(context.daemon.catalogue, ["glm"], dt.date(2019, 12, 31))
    after = usable_models(context.daemon.catalogue, ["glm"], dt.date(2020, 1, 1))
    assert [model.id for model in before] == ["glm-muse", "glm-gone"]
    assert [model.id for model in after] == ["glm-muse"]


def test_the_window_itself_is_room_enough(context: "Context") -> None:
    """Question and answer may fill the window to the last token, and not one more."""
    model = context.daemon.catalogue.resolve("kimi-small")
    require_room(model, (), tokens=7_000, max_tokens=1_000, images=False)
    with pytest.raises(ContextLengthExceededError, match="send less"):
        require_room(model, (), tokens=7_001, max_tokens=1_000, images=False)


def test_with_images_only_models_that_see_would_fit(context: "Context") -> None:
    """A larger window is no help without eyes."""
    catalogue = context.daemon.catalogue
    with pytest.raises(ContextLengthExceededError) as caught:
        require_room(catalogue.resolve("kimi-small"), catalogue.models, tokens=300_000, max_tokens=None, images=True)
    assert caught.value.details is not None
    assert caught.value.details["models"] == ["glm-gone"]
