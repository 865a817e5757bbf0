"""``listmodels``: the models of the catalog, and whether each is available."""

import dataclasses
import datetime as dt
from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field

from ...protocol.error_codes import ServiceUnavailableError
from ...providers import Model, ModelCatalog, ModelPrice
from ..former_arguments import MODEL_OPTIONS
from ..provider_names import check_provider
from ..tool import Arguments, ToolOutput, tool
from ..tool_context import DaemonView, ToolContext


class ListModelsArguments(Arguments):
    """An optional filter by provider."""

    ignored_arguments: ClassVar[Mapping[str, str]] = {"model": MODEL_OPTIONS["model"]}

    provider: str | None = Field(default=None, description="List only this provider's models.")


@tool("listmodels", read_only=True, open_world=False, idempotent=True)
async def listmodels(arguments: ListModelsArguments, context: ToolContext) -> ToolOutput:
    """List models with kind, context window, output limit, inputs, thinking, price, aliases and availability.

    `missing` says why a model is unavailable, such as a missing API key. `listed` says whether the vendor lists the
    model for the key in use (null if unknown).
    """
    providers = {provider["name"]: provider for provider in context.daemon.providers()}
    check_provider(arguments.provider, providers)
    models = [
        _row(model, providers[model.provider], context.daemon.listed(model))
        for model in _models(context.daemon.catalog)
        if arguments.provider in {None, model.provider}
    ]
    default, today = _default_model(context.daemon), dt.datetime.now(dt.UTC).date()
    return ToolOutput(
        "\n".join(_line(row, is_default=row["id"] == default, today=today) for row in models),
        {"default": default, "models": models},
    )


def _models(catalog: ModelCatalog) -> list[Model]:
    """Returns the models of the catalog, and those that configured providers list."""
    return [*catalog.models, *(model for holder in catalog.open_providers.values() for model in holder.models)]


def _default_model(daemon: DaemonView) -> str | None:
    """Returns the default model's id, or None if no provider is configured."""
    try:
        return daemon.default_model()
    except ServiceUnavailableError:
        return None


def _row(model: Model, provider: dict[str, Any], listed: bool | None) -> dict[str, Any]:
    missing = str(provider["missing"])
    if not missing and listed is False and provider["lists_all"]:
        missing = f"{provider['label']} does not list it for the API key in use"
    return {
        "id": model.id,
        "provider": model.provider,
        "available": not missing,
        "listed": listed,
        "missing": missing or None,
        "kind": model.kind,
        "context_window": model.context_window,
        "max_output": model.max_output,
        "inputs": model.inputs,
        "thinking": model.thinking,
        "depths": model.depths,
        "tools": model.tools,
        "web_search": model.web_search,
        "price_per_million": _price(model.price),
        "aliases": model.aliases,
        "retired": model.retired,
        "note": model.note,
        "source": model.source,
        "date": model.date,
    }


def _price(price: ModelPrice | None) -> dict[str, Any] | None:
    if price is None:
        return None
    fields = dataclasses.asdict(price)
    return fields if price.long_prompt else {name: value for name, value in fields.items() if name != "long_prompt"}


def _line(row: dict[str, Any], *, is_default: bool, today: dt.date) -> str:
    """Describes one model in one line."""
    price, retired = row["price_per_million"], row["retired"]
    depths = ", ".join(row["depths"])
    thinking = {"switch": f"thinking optional: {depths}", "always": f"thinking always on: {depths}"}
    facts = [
        f"{row['id']} ({row['provider']})",
        "the default" if is_default else "",
        "makes embeddings" if row["kind"] == "embedding" else "",
        "window unknown" if row["context_window"] is None else f"{row['context_window']:,} tokens",
        f"output up to {row['max_output']:,}" if row["max_output"] else "",
        f"inputs: {', '.join(row['inputs'])}",
        thinking.get(row["thinking"], ""),
        "web search" if row["web_search"] else "",
        f"{price['input']:g} in, {price['output']:g} out {price['currency']} per million tokens" if price else "",
        f"aliases: {', '.join(row['aliases'])}" if row["aliases"] else "",
        f"{'retires' if retired > today else 'retired'} {retired}" if retired else "",
        {True: "listed by the vendor", False: "not listed by the vendor", None: ""}[row["listed"]],
        f"unavailable: {row['missing']}" if row["missing"] else "",
    ]
    return "; ".join(filter(None, facts))
