"""``provider_capabilities``: the capabilities of each provider's models, and its vendor transport."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from pydantic import Field

from ...providers import Model, OpenProvider
from ..provider_names import check_provider
from ..tool import Arguments, tool
from ..tool_context import ToolContext


class ProviderCapabilitiesArguments(Arguments):
    """An optional filter by provider."""

    ignored_arguments: ClassVar[Mapping[str, str]] = {
        "include_tools": "status lists the tools if its include_tools is true",
        "show_advanced": "all capabilities are listed",
        "invalidate_cache": "nothing is cached",
    }

    provider: str | None = Field(default=None, description="Show only this provider.")


@tool("provider_capabilities", read_only=True, open_world=False, idempotent=True)
async def provider_capabilities(arguments: ProviderCapabilitiesArguments, context: ToolContext) -> list[dict[str, Any]]:
    """Show each provider's state, models and largest context window, and which models support images, thinking,
    functions and web search, or make embeddings.

    `missing` says what to configure if a provider is unavailable.
    """
    providers = context.daemon.providers()
    check_provider(arguments.provider, [provider["name"] for provider in providers])
    return [
        {**provider, **_capabilities(context, provider["name"])}
        for provider in providers
        if arguments.provider in {None, provider["name"]}
    ]


def _capabilities(context: ToolContext, provider: str) -> dict[str, Any]:
    catalog = context.daemon.catalog
    holder = catalog.open_providers.get(provider)
    models = holder.models if holder else [model for model in catalog.models if model.provider == provider]
    return {
        "models": [model.id for model in models],
        "default_model": _default_model(models, holder),
        "largest_context_window": max((model.context_window or 0 for model in models), default=0) or None,
        "images": [model.id for model in models if "image" in model.inputs],
        "thinking": [model.id for model in models if model.thinking in ("switch", "always")],
        "functions": [model.id for model in models if model.tools and model.kind != "embedding"],
        "embeddings": [model.id for model in models if model.kind == "embedding"],
        "web_search": [model.id for model in models if model.web_search],
        "streaming": True,
        "files": holder is None,
    }


def _default_model(models: Sequence[Model], holder: OpenProvider | None) -> str | None:
    if holder is not None and holder.default_model is not None:
        return holder.default().id
    return next((model.id for model in models if model.default), None)
