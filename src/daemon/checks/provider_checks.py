"""The checks of ``toold providers``: the configuration, and whether a provider answers."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

from ...protocol.error_codes import CallError, ServiceUnavailableError
from ...providers import CompletionRequest, Message, Model, ModelCatalog, Provider
from ...providers.simulator import Simulator
from ..config.default_model import allowed_models
from ..config.provider_terms import known_models
from ..config.settings import Settings
from ..config.vendor_settings import VendorSettings
from ..provider_setup import open_vendors
from .check_result import CheckResult
from .remote_checks import key_check, reach, sdk_check

LIST_TIMEOUT_S: Final = 20.0
COMPLETE_TIMEOUT_S: Final = 60.0
MAX_ANSWER_TOKENS: Final = 16
"""The limit of the completion that a check requests."""


def provider_rows(settings: Settings) -> list[dict[str, Any]]:
    """One object per provider, from the settings only."""
    catalog = _catalog(settings)
    return [_row(vendor, settings, catalog) for vendor in settings.vendors]


def _row(vendor: VendorSettings, settings: Settings, catalog: ModelCatalog) -> dict[str, Any]:
    name = vendor.info.name
    table, holder = settings.providers.get(name), catalog.open_providers.get(name)
    models = [model for model in catalog.models if model.provider == name] if holder is None else list(holder.models)
    default = holder.default_model if holder is not None else catalog.default(name).id
    return {
        "name": name,
        "type": name if table is None else table.type,
        "base_url": vendor.base_url,
        "available": settings.simulated or vendor.api_key is not None,
        "simulated": settings.simulated,
        "key": vendor.key_origin or "not set",
        "max_in_flight": vendor.max_in_flight,
        "daily_budget": dict(vendor.daily_budget),
        "default_model": default,
        "known_models": len(models),
    }


async def check_provider(settings: Settings, name: str) -> list[CheckResult]:
    """Key, SDK, reachability without a key, and the vendor's list of models, which is free of charge."""
    vendor = next(vendor for vendor in settings.vendors if vendor.info.name == name)
    key = key_check(vendor, simulated=settings.simulated)
    if vendor.api_key is None and not settings.simulated:
        return [replace(key, status="fail"), sdk_check(vendor)]
    results = [key, sdk_check(vendor)]
    if not settings.simulated:
        results.append(await reach(name, vendor.base_url, vendor.setting("base_url")))
    try:
        models = (await list_models(settings, name)).models
    except CallError as error:
        return [*results, CheckResult(f"{name} models", "fail", error.message, f"check [providers.{name}] or the key")]
    listed = sum(row["listed"] is True for row in models)
    return [*results, CheckResult(f"{name} models", "ok", f"the vendor lists {listed}")]


async def complete(settings: Settings, name: str, model: str | None) -> CheckResult:
    """Requests one short completion, which the vendor bills. Without ``model``, uses the provider's default model."""
    check = f"{name} completion"
    catalog = _catalog(settings)
    try:
        chosen = catalog.default(name) if model is None else catalog.resolve(f"{name}/{model.removeprefix(f'{name}/')}")
        request = CompletionRequest(chosen, (Message("user", "Answer with one word."),), max_tokens=MAX_ANSWER_TOKENS)
        async with _opened(settings, name) as provider:
            completion = await provider.complete(request, timeout_s=COMPLETE_TIMEOUT_S)
    except CallError as error:
        return CheckResult(check, "fail", error.message, "name another model, or check the provider's settings")
    cost, usage = completion.cost, completion.usage
    tokens = "" if usage is None else f", {usage.input_tokens} tokens in and {usage.output_tokens} out"
    price = "cost unknown" if cost is None else f"{cost.amount:.6g} {cost.currency}"
    price = "simulated, free" if completion.simulated else price
    return CheckResult(check, "ok", f"{completion.model} answered{tokens} ({price})")


@dataclass(frozen=True, slots=True)
class ProviderModels:
    """The models of one provider."""

    models: list[dict[str, Any]]
    simulated: bool


async def list_models(settings: Settings, name: str) -> ProviderModels:
    """The known models and the models that the vendor lists: one request, free of charge.

    Raises:
        CallError: the provider has no key, or its vendor failed.
    """
    catalog = _catalog(settings)
    holder = catalog.open_providers.get(name)
    async with _opened(settings, name) as provider:
        listed = await provider.models.models(timeout_s=LIST_TIMEOUT_S)
    if holder is not None:
        holder.note_list(listed)
    ids = {model.id for model in listed}
    models = [model for model in catalog.models if model.provider == name] if holder is None else holder.models
    return ProviderModels([_model_row(model, listed=model.sent_id in ids) for model in models], provider.simulated)


def _model_row(model: Model, *, listed: bool) -> dict[str, Any]:
    price = model.price
    return {
        "id": model.id,
        "listed": listed,
        "kind": model.kind,
        "context_window": model.context_window,
        "max_output": model.max_output,
        "inputs": list(model.inputs),
        "thinking": model.thinking,
        "tools": model.tools,
        "price": None if price is None else {"currency": price.currency, "input": price.input, "output": price.output},
        "source": model.source or None,
    }


def _catalog(settings: Settings) -> ModelCatalog:
    return allowed_models(settings, known_models(settings.providers, settings.models, settings.prefer))


@asynccontextmanager
async def _opened(settings: Settings, name: str) -> AsyncIterator[Provider]:
    """The provider; it is simulated if the daemon's provider would be simulated.

    Raises:
        ServiceUnavailableError: it has no key.
    """
    async with AsyncExitStack() as stack:
        simulated = Simulator(catalog=_catalog(settings), providers=settings.providers)
        simulator = await stack.enter_async_context(simulated) if settings.simulated else None
        vendors = open_vendors(settings, simulator)
        for provider in vendors.providers.values():
            stack.push_async_callback(provider.close)
        if name not in vendors.providers:
            raise ServiceUnavailableError(vendors.absent[name], transient=False)
        yield vendors.providers[name]
