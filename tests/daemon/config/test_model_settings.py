"""``[models."PROVIDER/ID"]``: what the operator states of a configured provider's models."""

from collections.abc import Callable
from pathlib import Path

import pytest
from toold.daemon.config.default_model import allowed_models
from toold.daemon.config.provider_terms import known_models
from toold.daemon.config.setting_sources import SettingsError
from toold.daemon.config.settings import Settings
from toold.providers import ModelPrice

MakeSettings = Callable[..., Settings]


def test_stated_facts_are_those_of_the_model(settings_with: MakeSettings, tmp_path: Path) -> None:
    """Also of a model whose name has slashes and dots."""
    (tmp_path / "toold.toml").write_text(
        """
        default_model = "org/large-1.5"
        prefer = ["acme"]
        [providers.acme]
        base_url = "https://llm.example.org/v1"
        models = { include = ["org/*"], exclude = ["*-base"] }
        daily_budget = "5 USD"
        [models."acme/org/large-1.5"]
        context_window = 64_000
        max_output = 8_000
        inputs = ["text"]
        thinking = "always"
        efforts = ["low", "high"]
        tools = false
        structured = "object"
        price = { currency = "USD", input = 1, output = 4.5, cached_input = 0.1 }
        timeout_s = 300
        """
    )
    settings = settings_with()
    assert settings.default_model == "acme/org/large-1.5"
    assert settings.providers["acme"].daily_budget == {"USD": 5.0}
    model = known_models(settings.providers, settings.models, settings.prefer).resolve("acme/org/large-1.5")
    assert (model.context_window, model.max_output, model.inputs, model.tools) == (64_000, 8_000, ("text",), False)
    assert (model.thinking, model.efforts, model.structured, model.timeout_s) == (
        "always",
        ("low", "high"),
        "object",
        300,
    )
    assert model.price == ModelPrice("USD", 1, 4.5, 0.1)


@pytest.mark.parametrize(
    ("toml", "says"),
    [
        ("[models.large]", "must have the full name of a model"),
        ("[models.'b/large']\n[providers.acme]", "names the provider 'b', which is not configured"),
        ("[models.'acme/l']\ncontext_widnow = 1\n[providers.acme]", "did you mean 'context_window'"),
        ("[models.'acme/l']\ncontext_window = 0\n[providers.acme]", "context_window must be 1 or more"),
        ("[models.'acme/l']\nprice = { currency = 'USD', input = 1 }\n[providers.acme]", "price.output"),
        ("[models.'acme/l']\nprice = { currency = 'EUR', input = 1, output = 1 }\n[providers.acme]", "price.currency"),
        ("[models.'acme/l']\nefforts = ['low']\n[providers.acme]", "efforts need thinking"),
        ("[models.'acme/l']\ncontext_window = 1\nmax_output = 2\n[providers.acme]", "must be at most context_window"),
        ("models = 3", "must be set in toold.toml"),
        ("prefer = ['acmee']\n[providers.acme]", "must name providers: kimi, glm, acme; did you mean 'acme'"),
        ("[providers.acme]\nmodels = 3", "models"),
        ("[providers.acme]\ndaily_budget = '5 EUR'", "daily_budget must be amounts such as 5 USD"),
    ],
)
def test_invalid_tables_are_refused(settings_with: MakeSettings, tmp_path: Path, toml: str, says: str) -> None:
    """The message names the table, and what is allowed."""
    (tmp_path / "toold.toml").write_text(toml)
    with pytest.raises(SettingsError) as error:
        settings_with()
    assert says in str(error.value)


def test_a_preferred_provider_is_part_of_the_catalog_in_effect(settings_with: MakeSettings) -> None:
    """So that a reload can change it."""
    env = {"TOOLD_PROVIDERS__ACME__BASE_URL": "http://127.0.0.1:1/v1", "TOOLD_PREFER": "acme"}
    catalog = known_models({}, {}, ())
    assert allowed_models(settings_with(**env), catalog).prefer == ("acme",)
