"""Names of models of configured providers."""

import pytest
from toold.protocol.error_codes import InvalidArgumentsError
from toold.providers import ModelCatalog, OpenProvider

SHIPPED = ModelCatalog.load()


def test_a_full_name_is_the_model_of_its_provider() -> None:
    """Also without a list of the vendor. Window and price are unknown, and the built-in vendors have full names too."""
    model = SHIPPED.with_providers([OpenProvider("acme")]).resolve("acme/org/large")
    assert (model.id, model.sent_id, model.context_window, model.price) == ("acme/org/large", "org/large", None, None)
    assert SHIPPED.resolve("kimi/kimi-k2.6") is SHIPPED.resolve("kimi-k2.6")


def test_a_short_name_is_found_in_the_lists() -> None:
    """If two providers list it, the error has both full names. A name of the catalog keeps its meaning."""
    acme = OpenProvider("acme", listed=("large", "small", "glm-4.6"))
    catalog = SHIPPED.with_providers([acme, OpenProvider("other", listed=("large",))])
    assert catalog.resolve("small").id == "acme/small"
    assert catalog.resolve("glm-4.6").provider == "glm"
    with pytest.raises(InvalidArgumentsError, match="acme/large, other/large"):
        catalog.resolve("large")


def test_a_model_that_the_vendor_does_not_list_can_be_named_in_full() -> None:
    """The vendor decides; a short name that no provider lists is unknown, and full names are suggested."""
    acme = OpenProvider("acme", "hidden", listed=("large", "small"))
    catalog = SHIPPED.with_providers([acme])
    assert catalog.resolve("acme/larg").sent_id == "larg"
    assert acme.similar("larg") == ["acme/large"]
    with pytest.raises(InvalidArgumentsError, match="did you mean 'acme/large'"):
        catalog.resolve("acme-large")
    assert catalog.default("acme") == catalog.resolve("acme/hidden")


def test_a_provider_without_a_default_model_needs_a_name() -> None:
    """The error says what to set."""
    with pytest.raises(InvalidArgumentsError, match="set default_model in its table"):
        SHIPPED.with_providers([OpenProvider("acme")]).default("acme")


def test_a_long_list_is_cut() -> None:
    """At most 5,000 models of a provider are kept."""
    provider = OpenProvider("acme")
    provider.note_list(tuple(f"model-{number}" for number in range(6_000)))
    assert len(provider.models) == 5_000
