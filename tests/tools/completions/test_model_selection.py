"""The choice of the model: by name, by requirements, by price; and the errors if no model is suitable."""

import datetime as dt
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.protocol.error_codes import InvalidArgumentsError
from toold.providers import Model, ModelCatalog, ModelPrice
from toold.tools.completions.model_selection import (
    ModelChoice,
    ModelRequirements,
    cheapest,
    choose,
    require_support,
    too_long,
    unsupported,
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


def window_less(tokens: int, model: Model) -> int:
    assert model.context_window is not None
    return model.context_window - tokens


def chosen(requirements: ModelRequirements, models: tuple[Model, ...] = MODELS) -> Model:
    return cheapest(requirements, models, answer_tokens=1_000, max_prompt_tokens=partial(window_less, 1_000)).model


@pytest.mark.parametrize(
    ("requirements", "model"),
    [
        (ModelRequirements(100), SMALL),
        (ModelRequirements(7_500), PLAIN),  # too large for the small model
        (ModelRequirements(100, max_tokens=4_001), WORDY),  # cheap output
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
def test_the_cheapest_suitable_model_is_chosen(requirements: ModelRequirements, model: Model) -> None:
    """Requirements are checked first, then models are ranked by the cost of this call."""
    assert chosen(requirements) is model


def test_vendor_restrictions_are_respected() -> None:
    """A web search may exclude thinking, and a model may accept no image URLs; other models support both."""
    cheap = known(
        "cheap",
        "kimi",
        200_000,
        inputs=("text", "image"),
        image_urls=False,
        thinking="switch",
        web_search=True,
        search_excludes_thinking=True,
        price=ModelPrice("USD", 0, 0),
    )
    models = (*MODELS, cheap)
    assert chosen(ModelRequirements(100, web_search=True), models) is cheap
    assert chosen(ModelRequirements(100, web_search=True, thinking="minimal"), models) is cheap
    assert chosen(ModelRequirements(100, web_search=True, thinking=True), models) is SEEKER
    assert chosen(ModelRequirements(100, web_search=True, thinking="max"), models) is SEEKER
    assert chosen(ModelRequirements(100, web_search=True, thinking="low"), models) is SEEKER
    assert chosen(ModelRequirements(100, images=True), models) is cheap
    assert chosen(ModelRequirements(100, images=True, image_urls=True), models) is EYES


def test_the_error_considers_only_models_of_the_required_provider() -> None:
    with pytest.raises(InvalidArgumentsError, match=r"^images: "):
        chosen(ModelRequirements(100, images=True, provider="kimi"))


def test_an_unknown_price_ranks_last() -> None:
    """Models without a price rank last. The catalog's order breaks ties."""
    assert chosen(ModelRequirements(100), (UNPRICED, THINKER)) is THINKER
    twin = known("twin", "glm", 8_000, price=SMALL.price)
    assert chosen(ModelRequirements(100), (SMALL, twin)) is SMALL
    assert chosen(ModelRequirements(100), (twin, SMALL)) is twin


def test_prices_of_two_currencies_are_ranked() -> None:
    """12 CNY are less than 2 USD."""
    dollars = known("dollars", "kimi", 50_000, inputs=("text", "image"), price=ModelPrice("USD", 2.0, 2.0))
    assert chosen(ModelRequirements(100, images=True), (dollars, EYES)) is EYES


@pytest.mark.parametrize(
    ("requirements", "says"),
    [
        (
            ModelRequirements(100),
            "it is the cheapest of the 7 available models that are suitable and large enough",
        ),
        (
            ModelRequirements(100, images=True),
            "it is the only available model that is suitable and large enough",
        ),
        (ModelRequirements(2_000_000), "it has the largest window of the 7 available models that are suitable"),
    ],
)
def test_the_choice_has_a_reason(requirements: ModelRequirements, says: str) -> None:
    """The reason names the number of candidates."""
    assert cheapest(requirements, MODELS, answer_tokens=0, max_prompt_tokens=partial(window_less, 0)).reason == says


@pytest.mark.parametrize(
    ("requirements", "says"),
    [
        (
            ModelRequirements(1, images=True, web_search=True),
            "images: … can accept images and search the web together; …",
        ),
        (
            ModelRequirements(1, web_search=True, provider="kimi"),
            "web_search: … can search the web; …",
        ),
        (
            ModelRequirements(1, images=True, image_urls=True, web_search=True, provider="kimi", temperature=True),
            "images: … can accept image URLs or search the web; …",
        ),
        (
            ModelRequirements(1, structured=True, provider="kimi"),
            "response_format: … can produce JSON output; …",
        ),
        (
            ModelRequirements(1, max_tokens=10**9, tools=True),
            "max_tokens: … can answer with 1,000,000,000 tokens; …",
        ),
        (
            ModelRequirements(1, thinking=False, tools=True, web_search=True, images=True),
            "images: … can accept images, answer without thinking, call tools and search the web together; …",
        ),
    ],
    ids=["two together", "one", "two unmet", "other provider", "length", "four together"],
)
def test_the_error_names_the_unmet_requirements(requirements: ModelRequirements, says: str) -> None:
    """The error names requirements that no model meets alone, or else those that no model meets together."""
    models = tuple(replace(model, max_output=model.max_output or 10**6) for model in MODELS)
    with pytest.raises(InvalidArgumentsError) as caught:
        chosen(requirements, models)
    assert caught.value.message == says.replace("…", "no available model", 1).replace("…", "change the request.")
    assert caught.value.details is not None
    assert list(caught.value.details["fields"]) == [says.partition(":")[0]]


def test_models_with_the_exact_thinking_depth_take_precedence() -> None:
    """They do so at any price if they are large enough; otherwise the cheapest model with a near depth is chosen."""
    deep = known("deep", "glm", 200_000, thinking="always", efforts=("high",), price=ModelPrice("USD", 50, 50))
    dear = known("dear", "kimi", 50_000, thinking="always", efforts=("medium",), price=ModelPrice("USD", 90, 90))
    models = (*MODELS, deep)
    assert chosen(ModelRequirements(100, thinking="high"), models) is deep
    assert chosen(ModelRequirements(100, thinking="high", provider="kimi"), models) is THINKER
    assert chosen(ModelRequirements(100, thinking="medium"), models) is SEEKER
    assert chosen(ModelRequirements(100, thinking="medium"), (*models, dear)) is dear
    assert chosen(ModelRequirements(100_000, thinking="medium"), (*models, dear)) is THINKER
    with pytest.raises(InvalidArgumentsError, match=r"^thinking: no available model can think; "):
        chosen(ModelRequirements(100, thinking="medium"), (PLAIN, EYES))
    with pytest.raises(InvalidArgumentsError, match=r"^thinking: no available model can answer without thinking; "):
        chosen(ModelRequirements(100, thinking="minimal"), (THINKER, deep))


def test_the_default_model_yields_only_to_the_same_vendors_exact_depth() -> None:
    """A requested depth is not a reason to choose another vendor."""
    low = known("low", "glm", 200_000, thinking="always", efforts=("low",), price=ModelPrice("USD", 50, 50))
    catalog = ModelCatalog(replace(model, default=model in {THINKER, SEEKER}) for model in (*MODELS, low))
    by = partial(choose, None, answer_tokens=1_000, max_prompt_tokens=partial(window_less, 0), default="seeker")
    assert by(ModelRequirements(100, thinking="max"), catalog, catalog.models) == ModelChoice(catalog.resolve("seeker"))
    assert by(ModelRequirements(100, thinking="medium"), catalog, catalog.models) == ModelChoice(
        catalog.resolve("seeker")
    )
    assert by(ModelRequirements(100, thinking="low"), catalog, catalog.models[:-1]) == ModelChoice(
        catalog.resolve("seeker")
    )
    other = by(ModelRequirements(100, thinking="low"), catalog, catalog.models)
    assert other.model.id == "low"
    assert other.reason is not None
    assert other.reason.endswith("not the default model: seeker supports thinking minimal or max, not low")


@pytest.mark.parametrize(
    ("model", "requirements", "field"),
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
def test_an_unsuitable_named_model_is_an_error_that_suggests_others(
    model: Model, requirements: ModelRequirements, field: str
) -> None:
    """A named model is never replaced; the error names the argument and suitable models."""
    with pytest.raises(InvalidArgumentsError, match=f"^{field}: {model.id} ") as caught:
        require_support(model, requirements, MODELS)
    details = caught.value.details
    assert details is not None
    suitable = [other.id for other in MODELS if unsupported(other, requirements) is None][:5]
    assert details["models"] == suitable
    assert ("use a model that does" in caught.value.message) == bool(suitable)


def test_models_too_small_for_the_answer_are_not_suggested() -> None:
    pattern = r"max_tokens: small answers .* that does: seeker, thinker or unpriced"
    with pytest.raises(InvalidArgumentsError, match=pattern):
        require_support(SMALL, ModelRequirements(100, max_tokens=150_000), (SMALL, PLAIN, SEEKER, THINKER, UNPRICED))
    with pytest.raises(InvalidArgumentsError, match="no available model does"):
        require_support(SMALL, ModelRequirements(100, max_tokens=10**9), MODELS)


def test_the_error_for_a_long_prompt_has_numbers_and_suggestions() -> None:
    """The error suggests only suitable models, smallest window first."""
    error = too_long(SMALL, ModelRequirements(90_000, max_tokens=10_000), MODELS)
    assert error.message == (
        "The request has about 90,000 tokens and 10,000 for the answer; the context window of small is 8,000 tokens; "
        "use a model with a larger window: plain, wordy, seeker, unpriced or thinker."
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
def test_retired_models_and_unconfigured_providers_are_not_usable(
    providers: list[str], today: dt.date, usable: list[str]
) -> None:
    """A model counts as retired from its retirement date on."""
    missing = known("gone", "glm", 1000, default=True, retired=dt.date(2026, 7, 1))
    catalog = ModelCatalog([known("new", "kimi", 1000, default=True), missing])
    assert [model.id for model in usable_models(catalog, providers, today)] == usable


any_requirements = st.builds(
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


@given(any_requirements, st.permutations(MODELS))
def test_the_chosen_model_meets_the_requirements(requirements: ModelRequirements, models: list[Any]) -> None:
    """This holds for any requirements and any order of the catalog."""
    if not any(unsupported(model, requirements) is None for model in models):
        with pytest.raises(InvalidArgumentsError):
            chosen(requirements, tuple(models))
        return
    model = chosen(requirements, tuple(models))
    assert unsupported(model, requirements) is None
    fitting = [
        m for m in models if unsupported(m, requirements) is None and m.context_window - 1_000 >= requirements.tokens
    ]
    assert not fitting or model in fitting


def test_an_unlisted_model_is_a_last_resort() -> None:
    """An unlisted model is chosen only if no listed one is suitable, because some vendors do not list all models they
    serve.
    """

    def picked(requirements: ModelRequirements, *unlisted: Model) -> Model:
        ids = [model.id for model in unlisted]
        return cheapest(
            requirements, MODELS, answer_tokens=1_000, max_prompt_tokens=partial(window_less, 0), unlisted=ids
        ).model

    assert picked(ModelRequirements(100)) is SMALL
    assert picked(ModelRequirements(100), SMALL) is WORDY
    assert picked(ModelRequirements(100, images=True), EYES) is EYES
    assert picked(ModelRequirements(100), *MODELS) is SMALL


def test_an_unavailable_model_is_not_chosen_but_may_be_named() -> None:
    """The vendor's list decides the choice; the vendor itself decides on a named model."""
    catalog, today = ModelCatalog.load(), dt.date(2026, 1, 1)
    usable = usable_models(catalog, ["kimi"], today)
    available = usable_models(catalog, ["kimi"], today, unavailable=[usable[0].id])
    assert available == usable[1:]
    named = choose(
        usable[0].id,
        ModelRequirements(100),
        catalog,
        available,
        default="kimi-k2.6",
        answer_tokens=100,
        max_prompt_tokens=partial(window_less, 0),
    )
    assert named.model is usable[0]


@pytest.mark.parametrize(
    ("requirements", "says", "vendor"),
    [
        (ModelRequirements(100), None, None),
        (ModelRequirements(2_000_000), None, None),  # parts that do not fit are omitted later
        (ModelRequirements(100, temperature=True), "thinker has a fixed temperature", "kimi"),
        (ModelRequirements(100, thinking="minimal"), "thinker supports thinking low or max, not minimal", "kimi"),
        (ModelRequirements(100, web_search=True), "thinker cannot search the web", None),
        (ModelRequirements(100, images=True), "thinker does not accept images", None),
    ],
    ids=["nothing", "window", "temperature", "minimal", "web search", "images"],
)
def test_without_a_name_the_default_model_answers_if_suitable(
    requirements: ModelRequirements, says: str | None, vendor: str | None
) -> None:
    """Otherwise ``auto`` decides among the same vendor's models, or among all if none of those is suitable."""
    catalog = ModelCatalog(replace(model, default=model in {THINKER, EYES}) for model in MODELS)
    by = partial(choose, answer_tokens=1_000, max_prompt_tokens=partial(window_less, 1_000), default="thinker")
    choice = by(None, requirements, catalog, catalog.models)
    if says is None:
        assert (choice.model.id, choice.reason) == ("thinker", None)
        return
    auto = by("auto", replace(requirements, provider=vendor), catalog, catalog.models)
    assert choice.model is auto.model
    assert choice.reason == f"{auto.reason}; not the default model: {says}"
    with pytest.raises(InvalidArgumentsError, match=says):
        by("thinker", requirements, catalog, catalog.models)
