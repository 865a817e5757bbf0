"""``listmodels``: every model that the daemon knows, and whether it can be asked."""

import dataclasses
import datetime as dt
from typing import Any

from pydantic import Field

from ...protocol.error_codes import ServiceUnavailableError
from ...providers import Model, ProviderName
from ..tool import Answer, Arguments, tool
from ..tool_context import DaemonView, ToolContext


class ListModelsArguments(Arguments):
    """Which provider's."""

    provider: ProviderName | None = Field(default=None, description="Only the models of this provider.")


@tool("listmodels", read_only=True, open_world=False, idempotent=True)
async def listmodels(arguments: ListModelsArguments, context: ToolContext) -> Answer:
    """List the models with window, output limit, inputs, thinking, price, aliases, and whether they are available.

    What makes one unavailable, such as a key that is not set, stands in `missing`. `listed` says whether its vendor
    lists it for the key in use; null where that is not known.
    """
    providers = {provider["name"]: provider for provider in context.daemon.providers()}
    models = [
        _row(model, providers[model.provider], context.daemon.listed(model))
        for model in context.daemon.catalog.models
        if arguments.provider in {None, model.provider}
    ]
    default, today = _default_model(context.daemon), dt.datetime.now(dt.UTC).date()
    return Answer(
        "\n".join(_line(row, is_default=row["id"] == default, today=today) for row in models),
        {"default": default, "models": models},
    )


def _default_model(daemon: DaemonView) -> str | None:
    """The model that ``chat`` uses when none is named; None where no provider is configured."""
    try:
        return daemon.default_model()
    except ServiceUnavailableError:
        return None


def _row(model: Model, provider: dict[str, Any], listed: bool | None) -> dict[str, Any]:
    missing = str(provider["missing"])
    if not missing and listed is False and provider["lists_all"]:
        missing = f"{provider['label']} does not list it for the key in use"
    return {
        "id": model.id,
        "provider": model.provider,
        "available": not missing,
        "listed": listed,
        "missing": missing or None,
        "context_window": model.context_window,
        "max_output": model.max_output,
        "inputs": model.inputs,
        "thinking": model.thinking,
        "depths": model.depths,
        "tools": model.tools,
        "web_search": model.web_search,
        "price_per_million": dataclasses.asdict(model.price) if model.price else None,
        "aliases": model.aliases,
        "retired": model.retired,
        "note": model.note,
        "source": model.source,
        "date": model.date,
    }


def _line(row: dict[str, Any], *, is_default: bool, today: dt.date) -> str:
    """One model in words."""
    price, retired = row["price_per_million"], row["retired"]
    depths = "" if row["thinking"] == "none" else ", ".join(row["depths"])
    facts = [
        f"{row['id']} ({row['provider']})",
        "the default" if is_default else "",
        f"{row['context_window']:,} tokens",
        f"answers up to {row['max_output']:,}" if row["max_output"] else "",
        f"takes {', '.join(row['inputs'])}",
        {"none": "", "switch": "can think: ", "always": "always thinks: "}[row["thinking"]] + depths,
        "searches the web" if row["web_search"] else "",
        f"{price['input']:g} in, {price['output']:g} out {price['currency']} a million" if price else "",
        f"also {', '.join(row['aliases'])}" if row["aliases"] else "",
        f"{'retires' if retired > today else 'retired'} {retired}" if retired else "",
        {True: "listed by its vendor", False: "not listed by its vendor", None: ""}[row["listed"]],
        f"not available: {row['missing']}" if row["missing"] else "",
    ]
    return "; ".join(filter(None, facts))
