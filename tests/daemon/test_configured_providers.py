"""Vendors of ``[providers.NAME]``: their settings, and calls to them through a daemon, over real HTTP."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from toold.daemon.checks import remote_checks
from toold.daemon.checks.doctor import default_model_check, former_variables
from toold.daemon.config.provider_terms import known_models
from toold.daemon.config.setting_sources import SettingsError
from toold.daemon.config.settings import Settings
from toold.daemon.config.settings_mapping import denied_paths
from toold.daemon.provider_setup import open_vendors
from toold.protocol.error_codes import CallError
from toold.providers.simulator import Simulator
from toold.serving import HttpServer
from toold.testing import daemon_under_test

MakeSettings = Callable[..., Settings]


@pytest.fixture
async def vendor() -> AsyncIterator[Simulator]:
    """A server that answers as the vendors ``acme`` and ``other``."""
    async with Simulator(providers=("acme", "other")) as simulator:
        yield simulator


NO_MODEL_LISTS = {"TOOLD_WARM_UP": "false"}
"""Otherwise it depends on the moment of a call whether the daemon knows the models that the vendors list."""


def acme(vendor: Simulator, **settings: str) -> dict[str, str]:
    table = {"BASE_URL": vendor.base_url("acme"), "API_KEY": "sim-key", **settings}
    return {f"TOOLD_PROVIDERS__ACME__{key}": value for key, value in table.items()}


@pytest.mark.parametrize("sdk", ["openai", "http"])
async def test_a_model_of_a_configured_provider_answers(vendor: Simulator, sdk: str) -> None:
    """A call with the full name reaches the vendor with its own name of the model, and its tokens are counted."""
    async with daemon_under_test(env=acme(vendor, SDK=sdk)) as daemon:
        answer = await daemon.client.call("chat", {"prompt": "Say hello.", "model": "acme/any/model:8b"})
        assert answer.structured["provider"] == "acme"
        assert answer.metadata.usage is not None
        assert answer.metadata.usage.input_tokens > 0
        assert answer.metadata.cost is None
        (request,) = vendor.log
        assert (request.vendor, request.body["model"]) == ("acme", "any/model:8b")
        assert "Say hello." in request.body["messages"][-1]["content"]


async def test_an_unknown_provider_or_refused_request_is_a_clear_error(vendor: Simulator) -> None:
    """A misspelt provider is suggested, a prompt that the vendor finds too long is named as such, and a call without a
    model still goes to a vendor with a default.
    """
    async with daemon_under_test(env=acme(vendor) | NO_MODEL_LISTS) as daemon:
        for model, prompt, says in (
            ("acmee/large", "?", "Unknown provider 'acmee'; did you mean 'acme'"),
            ("acme/large", "[[sim:too_long]]", "too long for the model"),
            ("acme/large", "[[sim:status=401]]", "check api_key in [providers.acme]"),
            ("acme/large", "[[sim:status=404]]", "acme rejected the request with HTTP 404"),
        ):
            with pytest.raises(CallError) as failure:
                await daemon.client.call("chat", {"prompt": prompt, "model": model})
            assert says in str(failure.value)
        answer = await daemon.client.call("chat", {"prompt": "?"})
        assert answer.structured["provider"] in {"kimi", "glm"}


@pytest.mark.parametrize("sdk", ["openai", "http"])
async def test_a_redirect_is_refused(vendor: Simulator, sdk: str) -> None:
    """The key is not sent to the address of a redirect."""
    target = f"{vendor.base_url('acme')}/chat/completions"

    async def redirect(_: Request) -> Response:
        return RedirectResponse(target, 307)

    server = HttpServer(Starlette(routes=[Route("/{path:path}", redirect, methods=["POST"])]), "127.0.0.1", 0, "--port")
    await server.start()
    try:
        env = acme(vendor, SDK=sdk, BASE_URL=f"http://127.0.0.1:{server.port}/v1")
        async with daemon_under_test(env=env) as daemon:
            with pytest.raises(CallError, match="redirects to another address"):
                await daemon.client.call("chat", {"prompt": "?", "model": "acme/large"})
    finally:
        await server.close()
    assert vendor.log == ()


@pytest.mark.parametrize(
    ("toml", "says"),
    [
        ("[providers.kimi]", "kimi is built in"),
        ("[providers.'A B']", "names are a letter"),
        ("[providers.a]\ntype = 'opnai'", "did you mean 'openai'"),
        ("[providers.a]\nbase_ulr = 'x'", "base_ulr is not a setting; did you mean 'base_url'"),
        ("[providers.a]\nbase_url = 'http://llm.example.org/v1'", "use https, or set allow_http"),
        ("[providers.a]\nbase_url = 'ftp://llm'", "must be a URL with http:// or https://"),
        ("[providers.a]\napi_key = { env = 'A', file = 'b' }", "api_key must be { env = … }, { file = … } or text"),
        ("[providers.a]\nmax_in_flight = 0", "max_in_flight"),
        ("[providers.a]\nheaders = { 'X Y' = 'z' }", "headers must be names and values"),
        ("default_model = 'b/large'\n[providers.a]", "Unknown provider 'b'"),
        ("providers = 3", "must be set in toold.toml"),
    ],
)
def test_invalid_settings_are_refused(settings_with: MakeSettings, tmp_path: Path, toml: str, says: str) -> None:
    """The message names the table, and what is allowed."""
    (tmp_path / "toold.toml").write_text(toml)
    with pytest.raises(SettingsError) as error:
        settings_with()
    assert says in str(error.value)


async def test_the_key_is_read_from_its_location(settings_with: MakeSettings, tmp_path: Path) -> None:
    """A file that no call may read, a variable, the preset's variable, or none; without its key a provider is missing
    with the reason, and no key is shown.
    """
    (tmp_path / "key").write_text("sk-secret-of-the-file\n")
    (tmp_path / "toold.toml").write_text(
        """
        [providers.filed]
        base_url = "https://llm.example.org/v1"
        api_key = { file = "key" }
        max_in_flight = 2
        [providers.gemini]
        type = "gemini"
        [providers.ollama]
        type = "ollama"
        [providers.lost]
        api_key = { env = "NOT_SET" }
        """
    )
    settings = settings_with(GEMINI_API_KEY="sk-secret-of-gemini")
    keys = {vendor.info.name: vendor.api_key for vendor in settings.vendors}
    assert keys["filed"] is not None
    assert keys["filed"].get_secret_value() == "sk-secret-of-the-file"
    assert keys["gemini"] is not None
    assert keys["gemini"].get_secret_value() == "sk-secret-of-gemini"
    assert not settings.simulated
    assert tmp_path / "key" in denied_paths(settings)
    vendors = open_vendors(settings, None)
    assert vendors.limits == {"filed": 2, "gemini": 4, "ollama": 4}
    assert list(vendors.providers) == ["filed", "gemini", "ollama"]
    assert "the variable NOT_SET is not set" in vendors.absent["lost"]
    shown = repr(settings) + repr(remote_checks.keys(settings)) + repr(vendors)
    assert "sk-secret" not in shown
    for provider in vendors.providers.values():
        await provider.close()


async def test_the_simulator_answers_for_configured_providers(settings_with: MakeSettings) -> None:
    """With ``--simulate`` no request leaves the machine, whatever the base URL is."""
    settings = settings_with(TOOLD_PROVIDERS__ACME__BASE_URL="https://llm.example.org/v1", TOOLD_SIMULATE="1")
    async with Simulator(providers=settings.providers) as simulator:
        vendors = open_vendors(settings, simulator)
        acme: Any = vendors.providers["acme"]
        assert acme.simulated
        assert await acme.models.ids(timeout_s=20) == ("small-model", "large-model")
        for provider in vendors.providers.values():
            await provider.close()


def test_the_doctor_names_the_default_model_and_no_variable_that_is_used(settings_with: MakeSettings) -> None:
    """The default of the only provider is the default model; the variable of its key has an effect."""
    env = {"GEMINI_API_KEY": "sk-x", "XAI_API_KEY": "sk-y"}
    table = {"TOOLD_PROVIDERS__G__TYPE": "gemini", "TOOLD_PROVIDERS__G__DEFAULT_MODEL": "flash"}
    settings = settings_with(**env, **table)
    assert default_model_check(settings).message == "g/flash, price unknown (the default of g)"
    messages = " ".join(check.message for check in former_variables(settings, env))
    assert "XAI_API_KEY" in messages
    assert "GEMINI_API_KEY" not in messages


async def test_stated_facts_apply_to_calls(vendor: Simulator, tmp_path: Path) -> None:
    """`auto` can choose a model whose window and price are stated; a provider's budget refuses one without a price,
    and a completion that is estimated to cost more than the budget; a model that the globs exclude is refused.
    """
    config = tmp_path / "facts.toml"
    config.write_text(
        f"""
        kimi_allowed_models = ["kimi-k3.1-pro"]
        glm_allowed_models = ["glm-5.3"]
        [providers.acme]
        base_url = "{vendor.base_url("acme")}"
        api_key = "sim-key"
        models = ["l*"]
        daily_budget = "1 USD"
        [models."acme/large"]
        context_window = 200_000
        price = {{ currency = "USD", input = 0.01, output = 0.01 }}
        [models."acme/lavish"]
        context_window = 200_000
        price = {{ currency = "USD", input = 10, output = 10_000 }}
        """
    )
    async with daemon_under_test(env={"TOOLD_CONFIG": str(config)} | NO_MODEL_LISTS) as daemon:
        answer = await daemon.client.call("chat", {"prompt": "?", "model": "auto"})
        assert (answer.structured["provider"], answer.metadata.model) == ("acme", "acme/large")
        assert answer.metadata.cost is not None
        for model, says in (
            ("acme/little", r'sets price in [models."acme/little"]'),
            ("acme/lavish", "more than the whole daily budget of the provider acme"),
            ("acme/mini", "the operator does not allow acme/mini"),
        ):
            with pytest.raises(CallError) as failure:
                await daemon.client.call("chat", {"prompt": "?", "model": model})
            assert says in str(failure.value)
        assert len(vendor.log) == 1


def test_shipped_models_are_known_at_the_vendors_address(settings_with: MakeSettings) -> None:
    """Not at another address, where a model of the same name may cost something else. A default model is one of them,
    if no vendor with precedence is configured; adding a provider does not change the default of Kimi and GLM.
    """
    openai = {"TOOLD_PROVIDERS__WORK__TYPE": "openai", "OPENAI_API_KEY": "sk-x"}
    settings = settings_with(**openai)
    catalog = known_models(settings.providers, settings.models, settings.prefer)
    assert catalog.resolve("gpt-5.5").id == "work/gpt-5.5"
    assert catalog.resolve("work/gpt-5.5").context_window == 1_050_000
    chosen = default_model_check(settings).message
    assert chosen.startswith("work/gpt-5-nano, 0.05 in, 0.4 out USD per million tokens (the best value")
    with_kimi = default_model_check(settings_with(**openai, KIMI_API_KEY="sk-y")).message
    assert with_kimi == default_model_check(settings_with(KIMI_API_KEY="sk-y")).message
    proxy = settings_with(**openai, TOOLD_PROVIDERS__WORK__BASE_URL="https://llm.example.org/v1")
    at_proxy = known_models(proxy.providers, proxy.models, proxy.prefer).resolve("work/gpt-5.5")
    assert (at_proxy.context_window, at_proxy.price) == (None, None)
    two = settings_with(**openai, TOOLD_PROVIDERS__HOME__TYPE="openai")
    with pytest.raises(CallError, match=r"use a full name, or set prefer: work/gpt-5.5, home/gpt-5.5"):
        known_models(two.providers, two.models, two.prefer).resolve("gpt-5.5")
