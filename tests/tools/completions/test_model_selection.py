"""Which model answers: by name, by need, by price; and what is said where none can."""

import datetime as dt
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.protocol.error_codes import InvalidArgumentsError
from toold.providers import Model, ModelCatalog, ModelPrice, ProviderName
from toold.tools.completions.model_selection import (
    ModelChoice,
    ModelRequirements,
    cheapest,
    choose,
    lacking,
    require_able,
    too_long,
    usable_models,
)

known = partial(Model, source="https://example.com/models", date=dt.date(2026, 1, 1))
SMALL = known("small", "kimi", 8_000, max_output=4_000, price=ModelPrice("USD", 0.1, 0.1))
PLAIN = known("plain", "kimi", 100_000, price=ModelPrice("USD", 1.0, 4.0))
WORDY = known("wordy", "glm", 100_000, price=ModelPrice("USD", 2.0, 0.5))
EYES = known("eyes", "glm", 50_000, inputs=("text", "image"), price=ModelPrice("CNY", 12.0, 12.0), tools=False)
THINKER = known(
    "thinker", "kimi", 1_000_000, thinking="always", efforts=("low", "max"), fixed_temperature=True,
    price=ModelPrice("USD", 3.0, 15.0),
)  # fmt: skip
SEEKER = known(
    "seeker", "glm", 200_000, thinking="switch", web_search=True, structured="object", price=ModelPrice("USD", 5.0, 5.0)
)
UNPRICED = known("unpriced", "glm", 400_000)
MODELS = (SMALL, PLAIN, WORDY, EYES, THINKER, SEEKER, UNPRICED)


def chosen(need: ModelRequirements, models: tuple[Model, ...] = MODELS) -> Model:
    return cheapest(need, models, answer_tokens=1_000, room=lambda model: model.context_window - 1_000).model


@pytest.mark.parametrize(
    ("need", "model"),
    [
        (ModelRequirements(100), SMALL),
        (ModelRequirements(7_500), PLAIN),  # the small one has no room
        (ModelRequirements(100, max_tokens=4_001), WORDY),  # what answers cheaply
        (ModelRequirements(20_000, max_tokens=100), PLAIN),
        (ModelRequirements(100, images=True), EYES),
        (ModelRequirements(100, thinking=True), SEEKER),
        (ModelRequirements(100, thinking="max"), SEEKER),
        (ModelRequirements(100, thinking="low"), THINKER),
        (ModelRequirements(100, thinking="minimal"), SMALL),
        (ModelRequirements(100, web_search=True), SEEKER),
        (ModelRequirements(100, structured=True), SEEKER),
        (ModelRequirements(300_000), THINKER),
        (ModelRequirements(300_000, temperature=True), UNPRICED),
        (ModelRequirements(2_000_000), THINKER),
        (ModelRequirements(100, provider="glm"), WORDY),
        (ModelRequirements(300_000, provider="glm"), UNPRICED),
    ],
    ids=str,
)
def test_the_cheapest_that_can_and_has_the_room_is_taken(need: ModelRequirements, model: Model) -> None:
    """By what the question needs first, then by what this very call costs."""
    assert chosen(need) is model


def test_what_its_vendor_excludes_is_left_to_others() -> None:
    """Moonshot's search goes without thinking alone, and its models take no addresses of images; Zhipu's do both."""
    cheap = known(
        "cheap",
        "kimi",
        200_000,
        inputs=("text", "image"),
        thinking="switch",
        web_search=True,
        price=ModelPrice("USD", 0, 0),
    )
    models = (*MODELS, cheap)
    assert chosen(ModelRequirements(100, web_search=True), models) is cheap
    assert chosen(ModelRequirements(100, web_search=True, thinking="minimal"), models) is cheap
    assert chosen(ModelRequirements(100, web_search=True, thinking=True), models) is SEEKER
    assert chosen(ModelRequirements(100, web_search=True, thinking="max"), models) is SEEKER
    assert chosen(ModelRequirements(100, web_search=True, thinking="low"), models) is SEEKER
    assert chosen(ModelRequirements(100, images=True), models) is cheap
    assert chosen(ModelRequirements(100, images=True, linked_images=True), models) is EYES


def test_what_a_provider_cannot_is_told_by_its_own_models() -> None:
    """Not by the models of others, which were never asked for."""
    with pytest.raises(InvalidArgumentsError, match=r"^images: "):
        chosen(ModelRequirements(100, images=True, provider="kimi"))


def test_a_price_that_is_not_known_counts_as_the_highest() -> None:
    """It may be anything; and among equals the catalog's first one is taken."""
    assert chosen(ModelRequirements(100), (UNPRICED, THINKER)) is THINKER
    twin = known("twin", "glm", 8_000, price=SMALL.price)
    assert chosen(ModelRequirements(100), (SMALL, twin)) is SMALL
    assert chosen(ModelRequirements(100), (twin, SMALL)) is twin


def test_prices_of_two_currencies_are_ranked() -> None:
    """Twelve yuan are less than two dollars."""
    dollars = known("dollars", "kimi", 50_000, inputs=("text", "image"), price=ModelPrice("USD", 2.0, 2.0))
    assert chosen(ModelRequirements(100, images=True), (dollars, EYES)) is EYES


@pytest.mark.parametrize(
    ("need", "says"),
    [
        (
            ModelRequirements(100),
            "it is the cheapest of the 7 available models that can do what is asked and have the room",
        ),
        (
            ModelRequirements(100, images=True),
            "it is the only available model that can do what is asked and has the room",
        ),
        (ModelRequirements(2_000_000), "it has the largest window of the 7 available models that can do what is asked"),
    ],
)
def test_it_says_why(need: ModelRequirements, says: str) -> None:
    """The reason names what it was chosen among."""
    assert cheapest(need, MODELS, answer_tokens=0, room=lambda model: model.context_window).because == says


@pytest.mark.parametrize(
    ("need", "says"),
    [
        (
            ModelRequirements(1, images=True, web_search=True),
            "images: no model … can take images and search the web at once; …",
        ),
        (ModelRequirements(1, web_search=True, provider="kimi"), "web_search: no model … can search the web; …"),
        (
            ModelRequirements(1, images=True, linked_images=True, web_search=True, provider="kimi", temperature=True),
            "images: no model … can take images by their addresses or search the web; …",
        ),
        (ModelRequirements(1, structured=True, provider="kimi"), "response_format: no model … can be held to JSON; …"),
        (
            ModelRequirements(1, max_tokens=10**9, tools=True),
            "max_tokens: no model … can answer with 1,000,000,000 tokens; …",
        ),
        (
            ModelRequirements(1, thinking=False, tools=True, web_search=True, images=True),
            "images: no model … can take images, answer without thinking, call tools and search the web at once; …",
        ),
    ],
    ids=["two at once", "one", "two of them never", "of another provider's", "length", "four at once"],
)
def test_where_none_can_it_is_told_what_is_lacking(need: ModelRequirements, says: str) -> None:
    """What no model does at all, or else what none does at once."""
    models = tuple(replace(model, max_output=model.max_output or 10**6) for model in MODELS)
    with pytest.raises(InvalidArgumentsError) as caught:
        chosen(need, models)
    assert caught.value.message == says.replace("…", "that is available here", 1).replace("…", "ask for less.")
    assert caught.value.details is not None
    assert list(caught.value.details["fields"]) == [says.partition(":")[0]]


def test_models_that_think_to_the_very_depth_go_before_others() -> None:
    """Whatever they cost, as long as they have the room; where none does, it is the cheapest that thinks nearly so."""
    deep = known("deep", "glm", 200_000, thinking="always", efforts=("high",), price=ModelPrice("USD", 50, 50))
    dear = known("dear", "kimi", 50_000, thinking="always", efforts=("medium",), price=ModelPrice("USD", 90, 90))
    models = (*MODELS, deep)
    assert chosen(ModelRequirements(100, thinking="high"), models) is deep
    assert chosen(ModelRequirements(100, thinking="high", provider="kimi"), models) is THINKER
    assert chosen(ModelRequirements(100, thinking="medium"), models) is SEEKER
    assert chosen(ModelRequirements(100, thinking="medium"), (*models, dear)) is dear
    assert chosen(ModelRequirements(100_000, thinking="medium"), (*models, dear)) is THINKER
    with pytest.raises(InvalidArgumentsError, match=r"^thinking: no model .* can think; "):
        chosen(ModelRequirements(100, thinking="medium"), (PLAIN, EYES))
    with pytest.raises(InvalidArgumentsError, match=r"^thinking: no model .* can answer without thinking; "):
        chosen(ModelRequirements(100, thinking="minimal"), (THINKER, deep))


def test_the_default_model_goes_before_others_but_for_those_that_think_to_the_very_depth() -> None:
    """A depth is something that the call asks for, though no reason to ask another vendor."""
    low = known("low", "glm", 200_000, thinking="always", efforts=("low",), price=ModelPrice("USD", 50, 50))
    catalog = ModelCatalog(replace(model, default=model in {THINKER, SEEKER}) for model in (*MODELS, low))
    by = partial(choose, None, answer_tokens=1_000, room=lambda model: model.context_window, default="seeker")
    assert by(ModelRequirements(100, thinking="max"), catalog, catalog.models) == ModelChoice(catalog.resolve("seeker"))
    assert by(ModelRequirements(100, thinking="medium"), catalog, catalog.models) == ModelChoice(
        catalog.resolve("seeker")
    )
    assert by(ModelRequirements(100, thinking="low"), catalog, catalog.models[:-1]) == ModelChoice(
        catalog.resolve("seeker")
    )
    other = by(ModelRequirements(100, thinking="low"), catalog, catalog.models)
    assert other.model.id == "low"
    assert other.because is not None
    assert other.because.endswith("the default model was passed over: seeker can think minimal or max, not low")


@pytest.mark.parametrize(
    ("model", "need", "field"),
    [
        (PLAIN, ModelRequirements(1, images=True), "images"),
        (PLAIN, ModelRequirements(1, thinking=True), "thinking"),
        (PLAIN, ModelRequirements(1, thinking="high"), "thinking"),
        (THINKER, ModelRequirements(1, thinking=False), "thinking"),
        (THINKER, ModelRequirements(1, thinking="minimal"), "thinking"),
        (EYES, ModelRequirements(1, tools=True), "tools"),
        (PLAIN, ModelRequirements(1, web_search=True), "web_search"),
        (PLAIN, ModelRequirements(1, structured=True), "response_format"),
        (THINKER, ModelRequirements(1, temperature=True), "temperature"),
        (SMALL, ModelRequirements(1, max_tokens=4_001), "max_tokens"),
    ],
)
def test_a_named_model_that_cannot_is_an_error_that_names_others(
    model: Model, need: ModelRequirements, field: str
) -> None:
    """No model is ever replaced: the caller reads which argument it is, and which models can."""
    with pytest.raises(InvalidArgumentsError, match=f"^{field}: {model.id} ") as caught:
        require_able(model, need, MODELS)
    details = caught.value.details
    assert details is not None
    able = [other.id for other in MODELS if lacking(other, need) is None][:5]
    assert details["models"] == able
    assert ("name one that does as model" in caught.value.message) == bool(able)


def test_models_without_room_for_the_answer_are_not_named() -> None:
    """Who asks one for a longer answer than it gives is sent to none that holds even less."""
    with pytest.raises(InvalidArgumentsError, match=r"max_tokens: small answers .* model: seeker, thinker or unpriced"):
        require_able(SMALL, ModelRequirements(100, max_tokens=150_000), (SMALL, PLAIN, SEEKER, THINKER, UNPRICED))
    with pytest.raises(InvalidArgumentsError, match="no model that is available here does"):
        require_able(SMALL, ModelRequirements(100, max_tokens=10**9), MODELS)


def test_what_does_not_fit_is_told_with_the_numbers_and_who_has_the_room() -> None:
    """The smallest windows first, and only models that can do what is asked."""
    error = too_long(SMALL, ModelRequirements(90_000, max_tokens=10_000), MODELS)
    assert error.message == (
        "The request has about 90,000 tokens and 10,000 for the answer, small holds 8,000; "
        "it would fit plain, wordy, seeker, unpriced or thinker."
    )
    assert "send less" in too_long(SMALL, ModelRequirements(2_000_000), MODELS).message
    assert too_long(SMALL, ModelRequirements(20_000, images=True), MODELS).details == {
        "estimated_tokens": 20_000, "max_tokens": None, "context_window": 8_000, "models": ["eyes"],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("providers", "today", "usable"),
    [
        (["kimi", "glm"], dt.date(2026, 6, 30), ["new", "gone"]),
        (["kimi", "glm"], dt.date(2026, 7, 1), ["new"]),
        (["glm"], dt.date(2026, 6, 30), ["gone"]),
        ([], dt.date(2026, 6, 30), []),
    ],
)
def test_retired_models_and_absent_providers_are_never_chosen(
    providers: list[str], today: dt.date, usable: list[str]
) -> None:
    """A model counts as switched off from its day on, and one without a key cannot be asked."""
    gone = known("gone", "glm", 1000, default=True, retired=dt.date(2026, 7, 1))
    catalog = ModelCatalog([known("new", "kimi", 1000, default=True), gone])
    assert [model.id for model in usable_models(catalog, providers, today)] == usable


needs = st.builds(
    ModelRequirements,
    tokens=st.integers(0, 2_000_000),
    max_tokens=st.none() | st.integers(1, 10_000),
    images=st.booleans(),
    thinking=st.none() | st.booleans() | st.sampled_from(["minimal", "low", "medium", "high", "max"]),
    tools=st.booleans(),
    web_search=st.booleans(),
    structured=st.booleans(),
    temperature=st.booleans(),
)


@given(needs, st.permutations(MODELS))
def test_whoever_is_chosen_can_do_what_is_asked(need: ModelRequirements, models: list[Any]) -> None:
    """Whatever is asked for, and in whatever order the models stand."""
    if not any(lacking(model, need) is None for model in models):
        with pytest.raises(InvalidArgumentsError):
            chosen(need, tuple(models))
        return
    model = chosen(need, tuple(models))
    assert lacking(model, need) is None
    fitting = [m for m in models if lacking(m, need) is None and m.context_window - 1_000 >= need.tokens]
    assert not fitting or model in fitting


def test_a_model_that_its_vendor_does_not_list_is_taken_where_no_other_can() -> None:
    """Some vendors leave models out that they serve."""

    def picked(need: ModelRequirements, *unlisted: Model) -> Model:
        ids = [model.id for model in unlisted]
        return cheapest(need, MODELS, answer_tokens=1_000, room=lambda model: model.context_window, unlisted=ids).model

    assert picked(ModelRequirements(100)) is SMALL
    assert picked(ModelRequirements(100), SMALL) is WORDY
    assert picked(ModelRequirements(100, images=True), EYES) is EYES
    assert picked(ModelRequirements(100), *MODELS) is SMALL


def test_a_model_that_cannot_be_asked_is_not_chosen_but_may_be_named() -> None:
    """By what its vendor lists; the vendor has the last word on a name."""
    catalog, today = ModelCatalog.load(), dt.date(2026, 1, 1)
    all_of_them = usable_models(catalog, ["kimi"], today)
    fewer = usable_models(catalog, ["kimi"], today, absent=[all_of_them[0].id])
    assert fewer == all_of_them[1:]
    named = choose(
        all_of_them[0].id,
        ModelRequirements(100),
        catalog,
        fewer,
        default="kimi-k2.6",
        answer_tokens=100,
        room=lambda model: model.context_window,
    )
    assert named.model is all_of_them[0]


@pytest.mark.parametrize(
    ("need", "says", "vendor"),
    [
        (ModelRequirements(100), None, None),
        (ModelRequirements(2_000_000), None, None),  # what has no room is left out
        (ModelRequirements(100, temperature=True), "thinker has a temperature of its own", "kimi"),
        (ModelRequirements(100, thinking="minimal"), "thinker can think low or max, not minimal", "kimi"),
        (ModelRequirements(100, web_search=True), "thinker cannot search the web", None),
        (ModelRequirements(100, images=True), "thinker takes no images", None),
    ],
    ids=["nothing", "room", "temperature", "minimal", "web search", "images"],
)
def test_where_none_is_named_the_default_one_answers_if_it_can(
    need: ModelRequirements, says: str | None, vendor: ProviderName | None
) -> None:
    """Else it is the one that ``auto`` would have taken of the same vendor's models, or of all where none of those can;
    the reason says what the default one lacks.
    """
    catalog = ModelCatalog(replace(model, default=model in {THINKER, EYES}) for model in MODELS)
    by = partial(choose, answer_tokens=1_000, room=lambda model: model.context_window - 1_000, default="thinker")
    choice = by(None, need, catalog, catalog.models)
    if says is None:
        assert (choice.model.id, choice.because) == ("thinker", None)
        return
    auto = by("auto", replace(need, provider=vendor), catalog, catalog.models)
    assert choice.model is auto.model
    assert choice.because == f"{auto.because}; the default model was passed over: {says}"
    with pytest.raises(InvalidArgumentsError, match=says):
        by("thinker", need, catalog, catalog.models)
