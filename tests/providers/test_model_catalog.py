"""The model catalog: strict file validation, exact names, prices."""

import datetime as dt
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.protocol.error_codes import InvalidArgumentsError
from toold.protocol.tool_call import Cost, Usage
from toold.providers import Model, ModelCatalog, ModelCatalogError, ModelPrice

ONE = """
[[model]]
id = "kimi-one"
provider = "kimi"
context_window = 1000
source = "https://example.test"
date = 2026-01-01
default = true
aliases = ["one", "Uno"]
"""

SHIPPED = ModelCatalog.load()


def test_every_shipped_model_has_window_source_and_date() -> None:
    """Every shipped model has a context window, the page that documents it, and the date on which the page was read."""
    assert len(SHIPPED.models) > 40
    for model in SHIPPED.models:
        assert model.context_window is not None
        assert model.context_window >= (512 if model.kind == "embedding" else 4096)
        assert (model.max_output or 0) <= model.context_window
        assert model.source.startswith("https://")
        assert model.date >= dt.date(2026, 1, 1)
        assert "text" in model.inputs
        assert model.price is None or min(model.price.input, model.price.output) >= 0


@pytest.mark.parametrize(
    "name",
    ["kimi-k2-0711-preview", "kimi-k2-0905-preview", "kimi-k2-turbo-preview", "kimi-k2-thinking", "moonshot-v1-8k",
     "moonshot-v1-32k", "moonshot-v1-128k", "moonshot-v1-auto", "glm-4.5", "glm-4.5-air", "glm-4.5-flash", "glm-4.6"],
)  # fmt: skip
def test_models_used_by_existing_scripts_exist(name: str) -> None:
    """Models that existing scripts use keep their ids, retired or not."""
    assert SHIPPED.resolve(name).id == name


@pytest.mark.parametrize("provider", ["kimi", "glm"])
def test_each_provider_has_a_default_that_is_not_retired(provider: str) -> None:
    """The default model of each provider is not retired."""
    assert SHIPPED.default(provider).provider == provider
    assert SHIPPED.default(provider).retired is None


def test_id_and_alias_are_case_insensitive() -> None:
    """Ids and aliases ignore case and surrounding spaces."""
    catalog = ModelCatalog.parse(ONE)
    for name in ("kimi-one", "KIMI-ONE", " uno ", "One"):
        assert catalog.resolve(name) is catalog.models[0]


@given(st.text(max_size=200) | st.sampled_from([m.id.upper() for m in SHIPPED.models]))
def test_names_resolve_exactly_or_fail(name: str) -> None:
    """Any text either is a known name and resolves to that model, or raises an error whose suggestions are known
    models.
    """
    known = {name.lower(): model for model in SHIPPED.models for name in (model.id, *model.aliases)}
    if name.strip().lower() in known:
        assert SHIPPED.resolve(name) is known[name.strip().lower()]
        return
    with pytest.raises(InvalidArgumentsError) as caught:
        SHIPPED.resolve(name)
    details = caught.value.details or {}
    assert set(details["suggestions"]) <= {model.id for model in SHIPPED.models}
    assert "model" in details["fields"]


def test_misspelt_model_gets_a_suggestion() -> None:
    """The error suggests the model with the most similar name."""
    with pytest.raises(InvalidArgumentsError, match=r"Unknown model 'glm4\.6'; did you mean 'glm-4\.6'") as caught:
        SHIPPED.resolve("glm4.6")
    assert (caught.value.details or {})["suggestions"][0] == "glm-4.6"


def test_unknown_model_error_points_to_listmodels() -> None:
    """If no name is similar, the error refers to ``listmodels``."""
    with pytest.raises(InvalidArgumentsError, match="`listmodels` lists"):
        SHIPPED.resolve("zzzzzzzz")


def test_unknown_provider_has_no_default() -> None:
    """The error names the known providers."""
    with pytest.raises(InvalidArgumentsError, match="Unknown provider 'acme'; known: glm, kimi"):
        SHIPPED.default("acme")


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ("[[model]", "is not TOML"),
        ("[models]", "unknown table 'models'"),
        (ONE.replace("context_window", "contextwindow"), "'kimi-one': unknown key 'contextwindow'; did you mean"),
        (ONE + "colour = 1", "unknown key 'colour'; known: aliases, capability_source"),
        (ONE.replace("context_window = 1000", ""), "missing required field `context_window`"),
        (ONE.replace("source", "note"), "missing required field `source`"),
        (ONE.replace("1000", '"1000"'), r"Expected `int \| null`, got `str` - at `\$.context_window`"),
        (ONE.replace("1000", "0"), "context_window must be a positive number"),
        (ONE + "max_output = -1", "max_output must be a positive number"),
        (ONE + 'price = { currency = "USD", input = 1.0, ouput = 1.0 }', "price: unknown key 'ouput'; did you mean"),
        (ONE.replace("default = true", ""), "kimi needs exactly one model with default = true; found: none"),
        (ONE + ONE.replace("kimi-one", "kimi-two").replace("[[model]]", "[[model]]"), "'one' names both"),
        ("[[model]]\ncontext_window = 1", r"model '\(without id\)'"),
    ],
)
def test_invalid_catalog_error_names_the_problem(toml: str, message: str) -> None:
    """The error names the model and the key, and suggests a correction."""
    with pytest.raises(ModelCatalogError, match=message):
        ModelCatalog.parse(toml)


def _priced(input: float, output: float, cached_input: float | None = None) -> Model:  # noqa: A002 - the price's name
    return replace(ModelCatalog.parse(ONE).models[0], price=ModelPrice("CNY", input, output, cached_input))


def test_cost_follows_the_list_price() -> None:
    """Cached tokens are part of the input and have their own price. The cost has the currency of the price."""
    usage = Usage(input_tokens=1_000_000, output_tokens=500_000, cached_tokens=400_000)
    assert _priced(input=2.0, output=10.0, cached_input=0.5).cost(usage) == Cost(1.2 + 0.2 + 5.0, "CNY")
    assert _priced(input=2.0, output=10.0).cost(usage) == Cost(7.0, "CNY")


def test_without_a_price_there_is_no_cost() -> None:
    """An unknown price gives no cost, as opposed to a cost of zero."""
    model = ModelCatalog.parse(ONE).models[0]
    assert model.cost(Usage(1, 1)) is None
    assert _priced(input=0.0, output=0.0).cost(Usage(1, 1)) == Cost(0.0, "CNY")


def test_repr_shows_the_number_of_models() -> None:
    """``repr`` is short enough for a log line."""
    assert repr(ModelCatalog.parse(ONE)) == "<ModelCatalog of 1 models>"


def test_model_abilities_have_a_source() -> None:
    """Every capability of a shipped model has a source, and each vendor has models with each capability."""
    for model in SHIPPED.models:
        assert bool(model.capability_source) == bool(model.efforts or model.web_search or model.structured != "none")
    for provider in ("kimi", "glm"):
        current = [model for model in SHIPPED.models if model.provider == provider and model.retired is None]
        assert [model for model in current if len(model.depths) > 2]
        assert [model for model in current if model.structured != "none"]
    assert SHIPPED.resolve("kimi-k2.6").web_search
    assert SHIPPED.resolve("glm-4.6").web_search


@pytest.mark.parametrize(
    ("thinking", "efforts", "depths"),
    [
        ("none", (), ("minimal",)),
        ("switch", (), ("minimal", "max")),
        ("always", (), ("max",)),
        ("always", ("low", "high"), ("low", "high")),
        ("switch", ("high", "max"), ("minimal", "high", "max")),
    ],
)
def test_depths_follow_from_switch_and_efforts(
    thinking: str, efforts: tuple[str, ...], depths: tuple[str, ...]
) -> None:
    """The depths are ``minimal`` if thinking can be switched off, then the efforts, or ``max`` for a model without
    efforts.
    """
    toml = f'{ONE}thinking = "{thinking}"\nefforts = {list(efforts)}\ncapability_source = "made up"\n'
    assert ModelCatalog.parse(toml.replace("'", '"')).models[0].depths == depths


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("web_search = true", "need a capability_source"),
        ('structured = "object"', "need a capability_source"),
        ('efforts = ["low"]\ncapability_source = "x"', 'it has efforts, but thinking = "none"'),
        ('efforts = ["extreme"]\ncapability_source = "x"', "Invalid enum value 'extreme'"),
    ],
)
def test_invalid_abilities_are_refused(line: str, words: str) -> None:
    """A capability needs a source, efforts need a model that thinks, and an effort must be a known value."""
    with pytest.raises(ModelCatalogError, match=words):
        ModelCatalog.parse(f"{ONE}{line}\n")
