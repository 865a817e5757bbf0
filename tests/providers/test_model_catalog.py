"""The model catalog: strict about its file, never replaces a name, and knows what tokens cost."""

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


def test_every_shipped_model_bears_window_source_and_date() -> None:
    """No figure of the shipped catalog is without the page that it was read from and the day."""
    assert len(SHIPPED.models) > 40
    for model in SHIPPED.models:
        assert model.context_window >= 4096
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
def test_models_that_scripts_name_are_there(name: str) -> None:
    """The models that existing scripts name are known under their own ids, retired or not."""
    assert SHIPPED.resolve(name).id == name


@pytest.mark.parametrize("provider", ["kimi", "glm"])
def test_each_provider_has_a_default_that_is_not_retired(provider: str) -> None:
    """What is meant where no model is named can be asked."""
    assert SHIPPED.default(provider).provider == provider
    assert SHIPPED.default(provider).retired is None


def test_a_model_is_found_by_id_and_alias_however_capitalised() -> None:
    """Ids and aliases are the same whatever their case, and blanks around them do not matter."""
    catalog = ModelCatalog.parse(ONE)
    for name in ("kimi-one", "KIMI-ONE", " uno ", "One"):
        assert catalog.resolve(name) is catalog.models[0]


@given(st.text(max_size=200) | st.sampled_from([m.id.upper() for m in SHIPPED.models]))
def test_a_name_is_never_replaced(name: str) -> None:
    """Any text is either a known name, and gives that model, or an error with suggestions that are known."""
    known = {name.lower(): model for model in SHIPPED.models for name in (model.id, *model.aliases)}
    if name.strip().lower() in known:
        assert SHIPPED.resolve(name) is known[name.strip().lower()]
        return
    with pytest.raises(InvalidArgumentsError) as caught:
        SHIPPED.resolve(name)
    details = caught.value.details or {}
    assert set(details["suggestions"]) <= {model.id for model in SHIPPED.models}
    assert "model" in details["fields"]


def test_a_misspelt_model_is_suggested() -> None:
    """The error says what may have been meant."""
    with pytest.raises(InvalidArgumentsError, match=r"Unknown model 'glm4\.6'; did you mean 'glm-4\.6'") as caught:
        SHIPPED.resolve("glm4.6")
    assert (caught.value.details or {})["suggestions"][0] == "glm-4.6"


def test_a_model_unlike_any_other_points_to_the_list() -> None:
    """Where nothing is close, the error says where the names are."""
    with pytest.raises(InvalidArgumentsError, match="`listmodels` lists"):
        SHIPPED.resolve("zzzzzzzz")


def test_an_unknown_provider_has_no_default() -> None:
    """The error names those that there are."""
    with pytest.raises(InvalidArgumentsError, match="Unknown provider 'openai'; known: glm, kimi"):
        SHIPPED.default("openai")


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ("[[model]", "is not TOML"),
        ("[models]", "unknown table 'models'"),
        (ONE.replace("context_window", "contextwindow"), "'kimi-one': unknown key 'contextwindow'; did you mean"),
        (ONE + "colour = 1", "unknown key 'colour'; known: ability_source, aliases"),
        (ONE.replace("context_window = 1000", ""), "missing required field `context_window`"),
        (ONE.replace("source", "note"), "missing required field `source`"),
        (ONE.replace("1000", '"1000"'), r"Expected `int`, got `str` - at `\$.context_window`"),
        (ONE.replace("1000", "0"), "context_window must be a positive number"),
        (ONE + "max_output = -1", "max_output must be a positive number"),
        (ONE + 'price = { currency = "USD", input = 1.0, ouput = 1.0 }', "price: unknown key 'ouput'; did you mean"),
        (ONE.replace('"kimi"', '"openai"'), "provider"),
        (ONE.replace("default = true", ""), "kimi needs exactly one model with default = true; found: none"),
        (ONE + ONE.replace("kimi-one", "kimi-two").replace("[[model]]", "[[model]]"), "'one' names both"),
        ("[[model]]\ncontext_window = 1", r"model '\(without id\)'"),
    ],
)
def test_a_wrong_file_says_what_is_wrong(toml: str, message: str) -> None:
    """The error names the model and the key, and suggests."""
    with pytest.raises(ModelCatalogError, match=message):
        ModelCatalog.parse(toml)


def _priced(**price: float) -> Model:
    return replace(ModelCatalog.parse(ONE).models[0], price=ModelPrice("CNY", **price))


def test_cost_follows_the_list_price() -> None:
    """Cached tokens are a part of the input and cost their own price, in the price's currency."""
    usage = Usage(input_tokens=1_000_000, output_tokens=500_000, cached_tokens=400_000)
    assert _priced(input=2.0, output=10.0, cached_input=0.5).cost(usage) == Cost(1.2 + 0.2 + 5.0, "CNY")
    assert _priced(input=2.0, output=10.0).cost(usage) == Cost(7.0, "CNY")


def test_without_a_price_there_is_no_cost() -> None:
    """A price that is not known makes no cost, not a cost of nothing."""
    model = ModelCatalog.parse(ONE).models[0]
    assert model.cost(Usage(1, 1)) is None
    assert _priced(input=0.0, output=0.0).cost(Usage(1, 1)) == Cost(0.0, "CNY")


def test_an_attempts_time_is_the_models_or_the_vendors() -> None:
    """Where the model names no time-out, the vendor's holds: Kimi 25 s."""
    model = ModelCatalog.parse(ONE).models[0]
    assert model.attempt_timeout_s == 25.0
    assert replace(model, timeout_s=300.0).attempt_timeout_s == 300.0


def test_the_catalogue_shows_its_size() -> None:
    """``repr`` is short enough for a log line."""
    assert repr(ModelCatalog.parse(ONE)) == "<ModelCatalog of 1 models>"


def test_what_a_model_can_do_has_a_source() -> None:
    """Nothing is said of a shipped model's abilities without the page that says it; each vendor has some of each."""
    for model in SHIPPED.models:
        assert bool(model.ability_source) == bool(model.efforts or model.web_search or model.structured != "none")
    for provider in ("kimi", "glm"):
        of_it = [model for model in SHIPPED.models if model.provider == provider and model.retired is None]
        assert [model for model in of_it if len(model.depths) > 2]
        assert [model for model in of_it if model.structured != "none"]
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
    """``minimal`` wherever thinking can be left out, then the efforts, or all that there is."""
    toml = f'{ONE}thinking = "{thinking}"\nefforts = {list(efforts)}\nability_source = "made up"\n'
    assert ModelCatalog.parse(toml.replace("'", '"')).models[0].depths == depths


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("web_search = true", "need an ability_source"),
        ('structured = "object"', "need an ability_source"),
        ('efforts = ["low"]\nability_source = "x"', 'it has efforts, but thinking = "none"'),
        ('efforts = ["extreme"]\nability_source = "x"', "Invalid enum value 'extreme'"),
    ],
)
def test_abilities_are_judged(line: str, words: str) -> None:
    """An ability needs its source, an effort something that thinks, and a word that is known."""
    with pytest.raises(ModelCatalogError, match=words):
        ModelCatalog.parse(f"{ONE}{line}\n")
