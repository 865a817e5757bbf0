"""Any vendor with an OpenAI-compatible API, using the ``openai`` SDK or plain HTTP."""

from functools import partial
from typing import Any

from . import request_body
from .completion import CompletionRequest, WebSearch
from .kimi import openai_loader
from .request_body import Body
from .request_check import refused
from .vendor_info import VendorAccess, VendorInfo
from .vendor_provider import VendorProvider


def build_compatible(
    vendor: VendorInfo, access: VendorAccess, sdk: str = "auto", *, limit_field: str = "max_tokens"
) -> VendorProvider:
    """Returns the vendor's provider. ``auto`` uses the openai SDK if it can be imported, else plain HTTP.

    ``limit_field`` is the field for the maximum tokens of the answer.
    """
    loader = openai_loader(vendor, access, sdk)
    return VendorProvider(loader, partial(compatible_body, limit_field=limit_field))


def compatible_body(request: CompletionRequest, *, stream: bool, limit_field: str) -> Body:
    """Returns the request body in OpenAI's format (platform.openai.com/docs/api-reference/chat/create).

    Raises:
        InvalidArgumentsError: the request has web search, which is specific to a vendor.
    """
    body = request_body.body(request, stream=stream, image_url=str, web_search=_web_search)
    if request.tool_choice is not None and request.tools:
        body["tool_choice"] = request.tool_choice
    if request.max_tokens is not None:
        body[limit_field] = request.max_tokens
    if stream:
        body["stream_options"] = {"include_usage": True}
    return body


def _web_search(_: WebSearch) -> dict[str, Any]:
    raise refused("web_search", "Only Kimi and GLM search the web; name one of their models.")
