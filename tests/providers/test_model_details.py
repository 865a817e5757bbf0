"""What Ollama and LiteLLM state of their models beyond the list, by recorded contracts and over real HTTP."""

from typing import Any

import pytest
from pydantic import SecretStr
from tests.providers.recorded_vendor import CONTRACTS, SDKS, RecordedVendor, open_recorded, recorded_response
from toold.providers import KIMI, ModelFacts, ModelPrice, VendorAccess
from toold.providers.model_details import MAX_REFUSED, ModelDetails, read_model_info, read_show
from toold.providers.model_facts import ListedModel
from toold.providers.simulator import Simulator
from toold.testing import daemon_under_test


def facts(stated: dict[str, Any]) -> ModelFacts:
    written: dict[str, Any] = {name: tuple(value) if name == "inputs" else value for name, value in stated.items()}
    if "price" in written:
        written["price"] = ModelPrice(*written["price"])
    return ModelFacts(**written)


@pytest.mark.parametrize("sdk", SDKS)
@pytest.mark.parametrize("preset", ["ollama", "litellm"])
async def test_details_complete_the_list(preset: str, sdk: str) -> None:
    """Each model has what its server states of it; one that is gone has nothing, and no other loses anything."""
    contract = CONTRACTS[preset]["details"]
    async with RecordedVendor() as vendor:
        vendor.following = [recorded_response({"body": contract["list"]}), *map(recorded_response, contract["answers"])]
        provider = open_recorded(preset, sdk, vendor.base_url)
        models = await provider.models.models(timeout_s=30)
        assert {model.id: model.facts for model in models} == {
            name: facts(stated) for name, stated in contract["expect"].items()
        }
        assert vendor.paths == ["/v1/models", *(answer["path"] for answer in contract["answers"])]
        assert [body for _, body in vendor.requests[1:]] == [answer.get("sent") for answer in contract["answers"]]
        await provider.close()


async def test_the_list_remains_without_details() -> None:
    """A server without that interface, or with an answer that is too long, costs no model; it is asked a few times."""
    listed = recorded_response({"body": {"data": [{"id": name} for name in "abcdef"]}})
    refusal = recorded_response({"status": 404, "body": {"error": "not found"}})
    async with RecordedVendor() as vendor:
        provider = open_recorded("ollama", "http", vendor.base_url)
        vendor.following, vendor.pieces = [listed], refusal
        assert await provider.models.models(timeout_s=30) == tuple(map(ListedModel, "abcdef"))
        assert len(vendor.requests) == 1 + MAX_REFUSED
        proxy = open_recorded("litellm", "http", vendor.base_url)
        vendor.following = [listed, recorded_response({"body": {"data": ["x" * (8 * 1024 * 1024)]}})]
        assert len(await proxy.models.models(timeout_s=30)) == 6
        vendor.following = [listed, recorded_response({"body": [1]})]
        assert len(await proxy.models.models(timeout_s=30)) == 6
        for opened in (provider, proxy):
            await opened.close()


async def test_details_end_with_the_time_of_the_list() -> None:
    """A server that does not answer delays no list beyond its time."""
    async with Simulator(providers=("local",), presets={"local": "ollama"}) as vendor:
        access = VendorAccess(api_key=SecretStr("sim-key"), base_url=vendor.base_url("local"), limit=1, simulated=True)
        details = ModelDetails(KIMI, access, "ollama")
        vendor.plan("local", "details", "hang")
        listed = (ListedModel("small-model"), ListedModel("large-model"))
        assert await details.completed(listed, timeout_s=0.2) == listed
        assert [model.facts.context_window for model in await details.completed(listed, timeout_s=60)] == [
            32_768,
            65_536,
        ]
        await details.close()


@pytest.mark.parametrize(
    ("document", "window"),
    [
        ({"parameters": "num_ctx 4096", "model_info": {"a.context_length": 8192}}, 4096),
        ({"parameters": "num_ctx 9000", "model_info": {"a.context_length": 8192}}, 8192),
        ({"parameters": "num_ctx 4096"}, 4096),
        ({"parameters": 'stop "num_ctx 1"', "model_info": {"a.context_length": 8192}}, 8192),
        ({"parameters": "num_ctx 0", "model_info": {"a.context_length": "8192"}}, None),
        ({"parameters": 1, "model_info": []}, None),
        (None, None),
    ],
)
def test_ollamas_window(document: Any, window: int | None) -> None:
    """What the model's file sets, within what the model takes."""
    assert read_show(document).context_window == window


def test_other_answers_of_litellm_state_nothing() -> None:
    """What is not a list, and values of other types, are ignored."""
    assert read_model_info(None) == read_model_info({"data": 3}) == {}
    wrong = {"max_input_tokens": True, "input_cost_per_token": "free", "output_cost_per_token": 5, "mode": 3}
    assert read_model_info({"data": [{"model_name": "m", "model_info": wrong}]}) == {"m": ModelFacts()}


async def test_the_daemon_shows_what_the_server_states() -> None:
    """``listmodels`` has the window and price of the listed models; what the operator states precedes them."""
    async with Simulator(providers=("local", "proxy"), presets={"local": "ollama", "proxy": "litellm"}) as vendor:
        env = {"TOOLD_SIMULATE": "false"}
        for name, kind in (("local", "ollama"), ("proxy", "litellm")):
            table = {"TYPE": kind, "BASE_URL": vendor.base_url(name), "API_KEY": "sim-key", "SDK": "http"}
            env |= {f"TOOLD_PROVIDERS__{name.upper()}__{setting}": value for setting, value in table.items()}
        async with daemon_under_test(env=env) as daemon:
            for name in ("local", "proxy"):
                await daemon.client.call("chat", {"model": f"{name}/small-model", "prompt": "?"})
            rows: dict[str, Any] = {}
            wanted = {"local/small-model", "local/large-model", "proxy/small-model"}
            while not wanted <= rows.keys() or any(rows[name]["context_window"] is None for name in wanted):
                models = (await daemon.client.call("listmodels", {})).structured["models"]
                rows = {row["id"]: row for row in models if row["provider"] in ("local", "proxy")}
            assert rows["local/small-model"]["context_window"] == 32_768
            assert rows["local/large-model"]["inputs"] == ["text", "image"]
            assert rows["proxy/small-model"]["price_per_million"]["input"] == 1.0
