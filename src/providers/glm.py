"""GLM, using the vendor's synchronous SDKs: ``zhipuai``, or its successor ``zai-sdk``, which has the same interface."""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module
from importlib.metadata import version
from typing import Any, Final
from urllib.parse import urlsplit

import httpx

from . import request_body
from .call_connections import CallConnections
from .completion import CompletionRequest, OnDelta, WebSearch
from .http_transport import HttpTransport, http_timeout
from .request_body import Body
from .request_check import refused
from .sdk_threads import LoopTransport, SdkThreads, ThreadedCall
from .token_count import TokenCountApi, count_at
from .transport_loader import TransportChoice, TransportLoader
from .vendor_dialect import Dialect
from .vendor_files import GLM_FILES
from .vendor_info import GLM, VendorAccess, VendorInfo
from .vendor_provider import VendorProvider
from .vendor_search import SearchApi, SearchQuery
from .vendor_transport import ApiAnswer, ApiRequest, AttemptPlan, ReadChunk, TransportErrors, sdk_arguments

_TOKEN_COUNT: Final = TokenCountApi("/tokenizer", count_at("usage", "prompt_tokens"))
"""docs.bigmodel.cn/api-reference, 文本分词器."""

_UNKNOWN_TO_THE_SDKS: Final = (
    *("reasoning_effort", "parallel_tool_calls", "presence_penalty", "frequency_penalty", "logit_bias"),
    *("verbosity", "service_tier"),
)
"""Fields that are not arguments of ``create`` in zhipuai or in older versions of zai-sdk."""


def build_glm(access: VendorAccess, sdk: str = "auto") -> VendorProvider:
    """Returns GLM's provider. ``auto`` uses the first that can be imported: zhipuai, zai-sdk, plain HTTP."""
    choices = {
        "zhipuai": TransportChoice("zhipuai", "zhipuai", _zhipuai),
        "zai": TransportChoice("zai-sdk", "zai", _zai),
        "http": TransportChoice("httpx", "httpx", HttpTransport),
    }
    loader = TransportLoader(GLM, access, list(choices.values()) if sdk == "auto" else [choices[sdk]])
    engine = search_engine(access.base_url)
    return VendorProvider(
        loader,
        partial(glm_body, engine=engine),
        files=GLM_FILES,
        token_count=_TOKEN_COUNT,
        search=SearchApi("/web_search", partial(search_body, engine=engine)),
        dialect=Dialect(token_inputs=False),
    )


def search_engine(base_url: str) -> str:
    """Returns the search engine to request: the better variant of Zhipu's own engine that the platform offers.

    docs.bigmodel.cn/cn/guide/tools/web-search has ``search_std`` and ``search_pro`` (and Sogou's and Quark's),
    docs.z.ai/guides/tools/web-search has ``search-prime``.
    """
    host = urlsplit(base_url).hostname or ""
    return "search-prime" if host == "z.ai" or host.endswith(".z.ai") else "search_pro"


def glm_body(request: CompletionRequest, *, stream: bool, engine: str = "search_pro") -> Body:
    """Returns the request body in Zhipu's format (docs.bigmodel.cn/api-reference, 对话补全). Streams include the usage.

    Raises:
        InvalidArgumentsError: the request has both web search and functions; Zhipu accepts only one of them.
    """
    searches = [isinstance(tool, WebSearch) for tool in request.tools]
    if any(searches) and not all(searches):
        raise refused("tools", "GLM accepts web search or functions, not both (docs.bigmodel.cn/cn/faq/api-issues).")
    if request.tool_choice == "required":
        raise refused("tool_choice", "GLM decides whether to call a function; use auto or none.")
    if request.tool_choice == "none":  # the API has no such value
        request = replace(request, tools=tuple(tool for tool in request.tools if isinstance(tool, WebSearch)))
    web_search = partial(_web_search, engine=engine)
    body = request_body.body(request, stream=stream, image_url=_image_url, web_search=web_search)
    if request.max_tokens is not None:
        body["max_tokens"] = request.max_tokens
    return body


def search_body(query: SearchQuery, *, engine: str) -> Body:
    """Returns the body of a web search request."""
    body: Body = {"search_engine": query.engine or engine, "search_query": query.query, "search_intent": False}
    body |= _search_settings(query.count, query.recency, query.domain)
    others = {"content_size": query.content_size, "request_id": query.request_id, "user_id": query.user_id}
    return body | {name: value for name, value in others.items() if value is not None}


def _web_search(search: WebSearch, *, engine: str) -> dict[str, Any]:
    """Returns web search as a tool of a completion; the results are part of the response."""
    settings: dict[str, Any] = {"enable": True, "search_engine": engine, "search_result": True}
    if search.query is not None:
        settings["search_query"] = search.query
    settings |= _search_settings(search.count, search.recency, search.domain)
    return {"type": "web_search", "web_search": settings}


def _search_settings(count: int | None, recency: str | None, domain: str | None) -> Body:
    settings = {"count": count, "search_recency_filter": recency, "search_domain_filter": domain}
    return {key: value for key, value in settings.items() if value is not None}


def _image_url(url: str) -> str:
    """Removes ``data:image/…;base64,``, because GLM expects bare base64; the SDKs do the same."""
    return url.split("base64,", 1)[-1] if url.startswith("data:image/") else url


def _zhipuai(vendor: VendorInfo, access: VendorAccess) -> "SyncSdkTransport":
    sdk: Any = import_module("zhipuai")
    return SyncSdkTransport(vendor, access, f"zhipuai {version('zhipuai')}", sdk.ZhipuAI, sdk.core)


def _zai(vendor: VendorInfo, access: VendorAccess) -> "SyncSdkTransport":
    sdk: Any = import_module("zai")
    return SyncSdkTransport(vendor, access, f"zai-sdk {version('zai-sdk')}", sdk.ZhipuAiClient, sdk.core)


class SyncSdkTransport:
    """The transport for either SDK, given its client class and the module with its errors."""

    def __init__(
        self, vendor: VendorInfo, access: VendorAccess, name: str, client: Callable[..., Any], errors: Any
    ) -> None:
        self.name = name
        self._access = access
        self._new_client = client
        self._sdk_errors = errors
        self._errors = TransportErrors(vendor, access)
        self._connections = CallConnections(access, httpx.AsyncClient)
        self._threads = SdkThreads(access.limit, f"toold-{vendor.name}")

    async def ask(self, body: Body, attempts: AttemptPlan) -> tuple[Any, Mapping[str, str]]:
        def ask(client: Any) -> Any:
            return _as_json(client.chat.completions.create(**_arguments(body)))

        return await self._in_thread(ask, attempts)

    async def stream(self, body: Body, attempts: AttemptPlan, read: ReadChunk, on_delta: OnDelta) -> Mapping[str, str]:
        call = ThreadedCall(asyncio.get_running_loop())

        def deliver(delta: Any) -> None:
            if not call.stopped:
                on_delta(delta)

        def ask(client: Any) -> None:
            for chunk in client.chat.completions.create(**_arguments(body)):
                delta = read(_as_json(chunk))
                if delta is not None:
                    call.loop.call_soon_threadsafe(deliver, delta)

        _, headers = await self._in_thread(ask, attempts, call)
        return headers

    async def send(self, request: ApiRequest, attempts: AttemptPlan) -> ApiAnswer:
        def send(client: Any) -> Any:
            method = getattr(client, request.method.lower())
            return method(request.path, cast_type=httpx.Response, **sdk_arguments(request))

        response, headers = await self._in_thread(send, attempts)
        return ApiAnswer(response.content, headers)

    async def _in_thread(
        self, work: Callable[[Any], Any], attempts: AttemptPlan, call: ThreadedCall | None = None
    ) -> tuple[Any, Mapping[str, str]]:
        """Runs ``work`` with the SDK's client. Returns its result and the headers of the last response."""
        call = call or ThreadedCall(asyncio.get_running_loop())
        async with self._connections.acquire() as http:
            transport = LoopTransport(call, http)

            def run() -> Any:
                with self._client(transport, attempts) as client:
                    return work(client)

            return await self._threads.run(call, run), transport.headers

    @contextmanager
    def _client(self, transport: LoopTransport, attempts: AttemptPlan) -> Iterator[Any]:
        """Yields the SDK's client for one call, and maps its errors. Opens no connection, so it is cheap."""
        sdk = self._sdk_errors
        try:
            # trust_env would read proxy settings for connections that this client does not make.
            with httpx.Client(transport=transport, trust_env=False) as http:
                yield self._new_client(
                    api_key=self._access.api_key.get_secret_value(),
                    base_url=self._access.base_url,
                    timeout=http_timeout(attempts),
                    max_retries=attempts.retries,
                    http_client=http,
                )
        # In a stream the SDKs do not wrap the exceptions of their HTTP client.
        except (sdk.APITimeoutError, httpx.TimeoutException) as error:
            raise self._errors.timed_out(error, attempts) from error
        except httpx.TransportError as error:
            raise self._errors.unreachable(error) from error
        except sdk.APIStatusError as error:
            raise self._errors.refused(error.status_code, error.response.text, error.response.headers) from error
        except sdk.APIResponseError as error:
            if error.json_data is None:  # the SDKs' APIConnectionError, which zai does not export
                raise self._errors.unreachable(error) from error
            raise self._errors.broken_stream(error.json_data) from error
        except (json.JSONDecodeError, RecursionError) as error:
            raise self._errors.not_json(error) from error

    async def close(self) -> None:
        self._threads.close()
        await self._connections.aclose()


def _as_json(answer: Any) -> Any:
    """Converts the SDK's object to JSON data. Data that the SDK did not parse is returned unchanged."""
    return answer.model_dump(warnings=False) if hasattr(answer, "model_dump") else answer


def _arguments(body: Body) -> dict[str, Any]:
    """Converts the body to the SDKs' arguments; unknown fields go into ``extra_body``."""
    known = {key: value for key, value in body.items() if key not in _UNKNOWN_TO_THE_SDKS}
    unknown = {key: value for key, value in body.items() if key in _UNKNOWN_TO_THE_SDKS}
    return {**known, "extra_body": unknown} if unknown else known
