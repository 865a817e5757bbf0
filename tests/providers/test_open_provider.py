"""Names and facts of the models of configured providers."""

import pytest
from toold.protocol.error_codes import InvalidArgumentsError
from toold.providers import ListedModel, ModelCatalog, ModelFacts, ModelGlobs, ModelPrice, OpenProvider, ProviderTerms

SHIPPED = ModelCatalog.load()


def provider(name: str, *listed: str, terms: ProviderTerms | None = None) -> OpenProvider:
    return OpenProvider(name, terms, [ListedModel(vendor_id) for vendor_id in listed])


def test_a_full_name_is_the_model_of_its_provider() -> None:
    """Also without a list of the vendor. Window and price are unknown, and the built-in vendors have full names too."""
    model = SHIPPED.with_providers([OpenProvider("acme")]).resolve("acme/org/large")
    assert (model.id, model.sent_id, model.context_window, model.price) == ("acme/org/large", "org/large", None, None)
    assert SHIPPED.resolve("kimi/kimi-k2.6") is SHIPPED.resolve("kimi-k2.6")


def test_a_short_name_is_found_in_the_lists() -> None:
    """If two providers list it, the error has both full names. A name of the catalog keeps its meaning."""
    acme, other = provider("acme", "large", "small", "glm-4.6"), provider("other", "large")
    catalog = SHIPPED.with_providers([acme, other])
    assert catalog.resolve("small").id == "acme/small"
    assert catalog.resolve("glm-4.6").provider == "glm"
    with pytest.raises(InvalidArgumentsError, match="set prefer: acme/large, other/large"):
        catalog.resolve("large")


def test_a_preferred_provider_answers_to_a_short_name() -> None:
    """As long as its list is unknown, it could have the name, so the name is refused and not given to another one."""
    acme, other = provider("acme", "large"), provider("other", "large", "small")
    assert SHIPPED.with_providers([acme, other], ["other"]).resolve("large").id == "other/large"
    assert SHIPPED.with_providers([acme, other], ["acme"]).resolve("small").id == "other/small"
    with pytest.raises(InvalidArgumentsError, match="the models of third, which prefer names, are not known yet"):
        SHIPPED.with_providers([acme, OpenProvider("third")], ["third"]).resolve("large")


def test_a_model_that_the_vendor_does_not_list_can_be_named_in_full() -> None:
    """The vendor decides; a short name that no provider lists is unknown, and full names are suggested."""
    acme = provider("acme", "large", "small", terms=ProviderTerms(default_model="hidden"))
    catalog = SHIPPED.with_providers([acme])
    assert catalog.resolve("acme/larg").sent_id == "larg"
    assert acme.similar("larg") == ["acme/large"]
    with pytest.raises(InvalidArgumentsError, match="did you mean 'acme/large'"):
        catalog.resolve("acme-large")
    assert catalog.default("acme") == catalog.resolve("acme/hidden")


def test_a_provider_without_a_default_model_needs_a_name() -> None:
    """The error says what to set. With a default model, the provider's name is enough, unless it is a model's."""
    for resolve in (ModelCatalog.default, ModelCatalog.resolve):
        with pytest.raises(InvalidArgumentsError, match="set default_model in its table"):
            resolve(SHIPPED.with_providers([OpenProvider("acme")]), "acme")
    named = provider("acme", terms=ProviderTerms(default_model="large"))
    assert SHIPPED.with_providers([named]).resolve("acme").id == "acme/large"
    assert SHIPPED.with_providers([named, provider("other", "acme")]).resolve("acme").id == "other/acme"


def test_a_preset_that_is_not_configured_is_named() -> None:
    """The error says what to add."""
    with pytest.raises(InvalidArgumentsError, match=r"not configured: add \[providers.openai\] with this type"):
        SHIPPED.resolve("openai/gpt-5.5")


def test_what_the_operator_states_precedes_the_list_and_the_shipped_catalog() -> None:
    """What no source states stays unknown; only models whose window and price are stated may be chosen."""
    shipped = OpenProvider("x").model("large")
    terms = ProviderTerms(
        catalog={
            "large": ModelFacts(context_window=1, max_output=1, price=ModelPrice("USD", 1, 1)).applied_to(shipped)
        },
        stated={"large": ModelFacts(context_window=3), "mini": ModelFacts(context_window=9)},
        timeout_s=7.0,
    )
    listed = [ListedModel("large", ModelFacts(context_window=2, max_output=2)), ListedModel("tiny")]
    acme = OpenProvider("acme", terms, listed)
    large = acme.model("large")
    assert (large.id, large.context_window, large.max_output, large.timeout_s) == ("acme/large", 3, 2, 7.0)
    assert large.price == ModelPrice("USD", 1, 1)
    assert [model.id for model in acme.models] == ["acme/large", "acme/mini", "acme/tiny"]
    assert [model.id for model in acme.described_models] == ["acme/large"]


def test_models_that_the_globs_exclude_are_refused_and_not_listed() -> None:
    """Also if they are named in full; new terms apply to the list that is already there."""
    acme = provider("acme", "org/large", "org/large-audio", "other")
    acme.apply(ProviderTerms(globs=ModelGlobs(["org/*"], ["*-audio*"])))
    assert [model.id for model in acme.models] == ["acme/org/large"]
    with pytest.raises(InvalidArgumentsError, match=r"does not allow acme/other \(\[providers.acme\] models: include"):
        acme.model("other")
    acme.apply(ProviderTerms())
    assert len(acme.models) == 3


def test_a_long_list_is_cut() -> None:
    """At most 5,000 models of a provider are kept; a misspelt name among them still has the closest as a suggestion."""
    names = [f"organization-{number}/model-{number}-instruct" for number in range(6_000)]
    acme = provider("acme", *names)
    assert len(acme.models) == 5_000
    catalog = SHIPPED.with_providers([acme])
    with pytest.raises(InvalidArgumentsError, match="did you mean 'acme/organization-77/model-77-instruct'"):
        catalog.resolve("organization-77-model-77-instruct")
