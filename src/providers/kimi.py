"""Kimi, using the asynchronous client of the ``openai`` SDK, as the vendor documents."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib import import_module
from importlib.metadata import version
from typing import Any, Final

from ..protocol.json_text import InvalidJsonError, parse_json
from . import request_body
from .call_connections import CallConnections
from .completion import CompletionRequest, OnDelta, WebSearch
from .http_transport import HttpTransport
from .request_body import Body
from .request_check import refused
from .token_count import TokenCountApi, count_at
from .transport_loader import TransportChoice, TransportLoader
from .vendor_files import KIMI_FILES
from .vendor_info import KIMI, VendorAccess, VendorInfo
from .vendor_provider import VendorProvider
from .vendor_transport import (
    CONNECT_TIMEOUT_S,
    ApiAnswer,
    ApiRequest,
    AttemptPlan,
    ReadChunk,
    TransportErrors,
    sdk_arguments,
)

WEB_SEARCH: Final = "$web_search"
"""The name of the built-in tool (platform.kimi.ai/docs/guide/use-web-search)."""

_UNKNOWN_TO_OPENAI: Final = ("thinking",)
"""Fields that are not arguments of the SDK's ``create``."""

_TOKEN_COUNT: Final = TokenCountApi("/tokenizers/estimate-token-count", count_at("data", "total_tokens"))
"""platform.kimi.ai/docs/api/estimate."""


def build_kimi(access: VendorAccess, sdk: str = "auto") -> VendorProvider:
    """Returns Kimi's provider. ``auto`` uses the openai SDK if it can be imported, else plain HTTP."""
    return VendorProvider(openai_loader(KIMI, access, sdk), kimi_body, files=KIMI_FILES, token_count=_TOKEN_COUNT)


def openai_loader(vendor: VendorInfo, access: VendorAccess, sdk: str) -> TransportLoader:
    """Returns the transports of a vendor with OpenAI's API. ``auto`` uses the openai SDK if it can be imported, else
    plain HTTP.
    """
    choices = {
        "openai": TransportChoice("openai", "openai", OpenAITransport),
        "http": TransportChoice("httpx", "httpx", HttpTransport),
    }
    return TransportLoader(vendor, access, list(choices.values()) if sdk == "auto" else [choices[sdk]])


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
    """Returns the fields that a forced function call needs: only models with reasoning efforts think before it, as
    Moonshot's errors say (github.com/UKGovernmentBEIS/inspect_ai/pull/5152).
    """
    model = request.model
    if request.tool_choice == "none" or model.thinking == "none" or model.efforts:
        return {}
    if model.thinking == "always":
        raise refused("tool_choice", f"{model.id} always thinks, and so cannot be forced to call a function.")
    return _without_thinking(request, "forced function calls")


def _without_thinking(request: CompletionRequest, feature: str) -> Body:
    """Switches thinking off: Moonshot requires that with the feature, and thinking is on by default."""
    if request.thinking not in (None, False, "minimal"):
        raise refused("thinking", f"Kimi's {feature} cannot be used with thinking; omit thinking.")
    return {"thinking": {"type": "disabled"}} if request.model.thinking == "switch" else {}


class OpenAITransport:
    """``AsyncOpenAI`` with the vendor's base URL. Construct it in a thread: it imports the SDK."""

    def __init__(self, vendor: VendorInfo, access: VendorAccess) -> None:
        self._openai: Any = import_module("openai")
        self.name = f"openai {version('openai')}"
        self._access = access
        self._errors = TransportErrors(vendor, access)
        self._connections: CallConnections[Any] = CallConnections(access, self._openai.DefaultAsyncHttpxClient)

    async def ask(self, body: Body, attempts: AttemptPlan) -> tuple[Any, Mapping[str, str]]:
        async with self._client(attempts) as client:
            answer = await client.chat.completions.with_raw_response.create(**_arguments(body))
            return parse_json(answer.http_response.text), dict(answer.http_response.headers)

    async def stream(self, body: Body, attempts: AttemptPlan, read: ReadChunk, on_delta: OnDelta) -> Mapping[str, str]:
        async with (
            self._client(attempts) as client,
            await client.chat.completions.create(**_arguments(body)) as chunks,
        ):
            async for chunk in chunks:
                delta = read(chunk.to_dict())
                if delta is not None:
                    on_delta(delta)
            return dict(chunks.response.headers)

    async def send(self, request: ApiRequest, attempts: AttemptPlan) -> ApiAnswer:
        binary = self._openai.HttpxBinaryResponseContent  # raw bytes for any content type
        async with self._client(attempts) as client:
            method = getattr(client, request.method.lower())
            answer = await method(request.path, cast_to=binary, **sdk_arguments(request))
            return ApiAnswer(answer.content, dict(answer.response.headers))

    @asynccontextmanager
    async def _client(self, attempts: AttemptPlan) -> AsyncIterator[Any]:
        """Yields the SDK's client for one call, and maps its errors."""
        openai = self._openai
        try:
            async with self._connections.acquire() as http:
                yield openai.AsyncOpenAI(
                    api_key=self._access.api_key.get_secret_value(),
                    base_url=self._access.base_url,
                    timeout=openai.Timeout(attempts.timeout_s, connect=min(CONNECT_TIMEOUT_S, attempts.timeout_s)),
                    max_retries=attempts.retries,
                    http_client=http,
                    # The SDK reads these from the environment, where they are meant for OpenAI.
                    default_headers={
                        "OpenAI-Organization": openai.omit,
                        "OpenAI-Project": openai.omit,
                        **self._access.headers,
                    },
                )
        except openai.APITimeoutError as error:
            raise self._errors.timed_out(error, attempts) from error
        except openai.APIConnectionError as error:
            raise self._errors.unreachable(error) from error
        except openai.APIStatusError as error:
            raise self._errors.refused(error.status_code, error.response.text, error.response.headers) from error
        except openai.APIError as error:
            raise self._errors.broken_stream(error.body) from error
        except (json.JSONDecodeError, InvalidJsonError, RecursionError) as error:
            raise self._errors.not_json(error) from error

    async def close(self) -> None:
        await self._connections.aclose()


def _arguments(body: Body) -> dict[str, Any]:
    """Converts the body to the SDK's arguments; unknown fields go into ``extra_body``."""
    known = {key: value for key, value in body.items() if key not in _UNKNOWN_TO_OPENAI}
    unknown = {key: value for key, value in body.items() if key in _UNKNOWN_TO_OPENAI}
    return {**known, "extra_body": unknown} if unknown else known
