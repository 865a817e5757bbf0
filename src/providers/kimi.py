"""Kimi, using the asynchronous client of the ``openai`` SDK, as the vendor documents."""

from typing import Any, Final

from . import request_body
from .completion import CompletionRequest, WebSearch
from .openai_transport import openai_loader
from .request_body import Body
from .request_check import refused
from .token_count import TokenCountApi, count_at
from .vendor_files import KIMI_FILES
from .vendor_info import KIMI, VendorAccess
from .vendor_provider import VendorProvider

WEB_SEARCH: Final = "$web_search"
"""The name of the built-in tool (platform.kimi.ai/docs/guide/use-web-search)."""

_TOKEN_COUNT: Final = TokenCountApi("/tokenizers/estimate-token-count", count_at("data", "total_tokens"))
"""platform.kimi.ai/docs/api/estimate."""


def build_kimi(access: VendorAccess, sdk: str = "auto") -> VendorProvider:
    """Returns Kimi's provider. ``auto`` uses the openai SDK if it can be imported, else plain HTTP."""
    return VendorProvider(openai_loader(KIMI, access, sdk), kimi_body, files=KIMI_FILES, token_count=_TOKEN_COUNT)


def kimi_body(request: CompletionRequest, *, stream: bool) -> Body:
    """Returns the request body in Moonshot's format (platform.kimi.ai/docs/api/chat).

    Raises:
        InvalidArgumentsError: an image is not a ``data:`` URL, or the web search has settings or is used with thinking.
    """
    body = request_body.body(request, stream=stream, image_url=_image_url, web_search=_web_search)
    if any(isinstance(tool, WebSearch) for tool in request.tools):
        body |= _without_thinking(request, "web search")
    if request.tool_choice is not None:
        body |= {"tool_choice": request.tool_choice, **_forcing(request)}
    if request.max_tokens is not None:
        body["max_completion_tokens"] = request.max_tokens
    if request.cache_key is not None:
        body["prompt_cache_key"] = request.cache_key
    if stream:
        body["stream_options"] = {"include_usage": True}
    return body


def _image_url(url: str) -> str:
    if not url.startswith("data:"):
        raise refused("images", "Kimi accepts images only as data: URLs; attach the image itself instead of its URL.")
    return url


def _web_search(search: WebSearch) -> dict[str, Any]:
    if search != WebSearch():
        raise refused("web_search", "Kimi's web search has no settings; the model decides what to search for.")
    return {"type": "builtin_function", "function": {"name": WEB_SEARCH}}


def _forcing(request: CompletionRequest) -> Body:
    """Returns the fields that a forced function call needs. Before such a call, only models with reasoning efforts can
    think, according to Moonshot's errors (github.com/UKGovernmentBEIS/inspect_ai/pull/5152).
    """
    model = request.model
    if request.tool_choice == "none" or model.thinking == "none" or model.efforts:
        return {}
    if model.thinking == "always":
        raise refused("tool_choice", f"{model.id} always thinks, so it cannot be forced to call a function.")
    return _without_thinking(request, "forced function calls")


def _without_thinking(request: CompletionRequest, feature: str) -> Body:
    """Switches thinking off, as Moonshot requires with this feature; it is on by default."""
    if request.thinking not in (None, False, "minimal"):
        raise refused("thinking", f"Kimi's {feature} cannot be used with thinking; omit thinking.")
    return {"thinking": {"type": "disabled"}} if request.model.thinking == "switch" else {}
