"""GLM, on the vendor's synchronous SDKs: ``zhipuai``, or its successor ``zai-sdk``, which is of the same shape."""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import version
from typing import Any

import httpx

from . import question
from .completion import CompletionRequest, OnDelta, Provider
from .connections import Connections
from .http import HttpRoad, http_timeout
from .provider import RoadChoice, VendorProvider
from .question import Body
from .road import Attempts, Errors, ReadChunk
from .threaded import LoopTransport, ThreadedCall, Threads
from .vendor import GLM, Access, GlmSdk, Vendor


def build_glm(access: Access, *, sdk: GlmSdk = "auto") -> Provider:
    """GLM's provider. ``auto`` takes zhipuai, else zai-sdk, else plain HTTP: the first that can be imported."""
    choices = {
        "zhipuai": RoadChoice("zhipuai", "zhipuai", _zhipuai),
        "zai": RoadChoice("zai-sdk", "zai", _zai),
        "http": RoadChoice("httpx", "httpx", HttpRoad),
    }
    return VendorProvider(GLM, access, glm_body, list(choices.values()) if sdk == "auto" else [choices[sdk]])


def glm_body(request: CompletionRequest, *, stream: bool) -> Body:
    """The question as Zhipu takes it (docs.bigmodel.cn/api-reference); a stream's usage comes unasked."""
    body = question.body(request, stream=stream, image_url=_image_url)
    if request.max_tokens is not None:
        body["max_tokens"] = request.max_tokens
    return body


def _image_url(url: str) -> str:
    """GLM takes base64 bare, without ``data:image/…;base64,`` before it; the SDKs cut that off too."""
    return url.split("base64,", 1)[-1] if url.startswith("data:image/") else url


def _zhipuai(vendor: Vendor, access: Access) -> "SyncSdkRoad":
    sdk: Any = import_module("zhipuai")
    return SyncSdkRoad(vendor, access, f"zhipuai {version('zhipuai')}", sdk.ZhipuAI, sdk.core)


def _zai(vendor: Vendor, access: Access) -> "SyncSdkRoad":
    sdk: Any = import_module("zai")
    return SyncSdkRoad(vendor, access, f"zai-sdk {version('zai-sdk')}", sdk.ZhipuAiClient, sdk.core)


class SyncSdkRoad:
    """Either SDK: its client's class, and the module that holds its errors."""

    def __init__(self, vendor: Vendor, access: Access, name: str, client: Callable[..., Any], errors: Any) -> None:
        self.name = name
        self._access = access
        self._new_client = client
        self._sdk_errors = errors
        self._errors = Errors(vendor, access)
        self._connections = Connections(access, httpx.AsyncClient)
        self._threads = Threads(access.limit, f"toold-{vendor.name}")

    async def ask(self, body: Body, attempts: Attempts) -> Any:
        call = ThreadedCall(asyncio.get_running_loop())
        async with self._connections.lend() as http:

            def work() -> Any:
                with self._completions(LoopTransport(call, http), attempts) as create:
                    return _as_json(create(**body))

            return await self._threads.run(call, work)

    async def stream(self, body: Body, attempts: Attempts, read: ReadChunk, on_delta: OnDelta) -> None:
        call = ThreadedCall(asyncio.get_running_loop())

        def deliver(delta: Any) -> None:
            if not call.stopped:
                on_delta(delta)

        async with self._connections.lend() as http:

            def work() -> None:
                with self._completions(LoopTransport(call, http), attempts) as create:
                    for chunk in create(**body):
                        delta = read(_as_json(chunk))
                        if delta is not None:
                            call.loop.call_soon_threadsafe(deliver, delta)

            await self._threads.run(call, work)

    @contextmanager
    def _completions(self, transport: LoopTransport, attempts: Attempts) -> Iterator[Callable[..., Any]]:
        """The SDK's ``create`` for one call, with its errors mapped. Its client opens nothing, so it costs little."""
        sdk = self._sdk_errors
        try:
            # Its `trust_env` would read proxies for connections that it does not make.
            with httpx.Client(transport=transport, trust_env=False) as http:
                client = self._new_client(
                    api_key=self._access.api_key.get_secret_value(),
                    base_url=self._access.base_url,
                    timeout=http_timeout(attempts),
                    max_retries=attempts.retries,
                    http_client=http,
                )
                yield client.chat.completions.create
        # Within a stream the SDKs do not wrap what their HTTP client raises.
        except (sdk.APITimeoutError, httpx.TimeoutException) as error:
            raise self._errors.timed_out(error, attempts) from error
        except httpx.TransportError as error:
            raise self._errors.unreachable(error) from error
        except sdk.APIStatusError as error:
            raise self._errors.refused(error.status_code, error.response.text, error.response.headers) from error
        except sdk.APIResponseError as error:
            if error.json_data is None:  # their APIConnectionError, which zai does not show
                raise self._errors.unreachable(error) from error
            raise self._errors.broken_stream(error.json_data) from error
        except json.JSONDecodeError as error:
            raise self._errors.not_json() from error

    async def close(self) -> None:
        self._threads.close()
        await self._connections.aclose()


def _as_json(answer: Any) -> Any:
    """The SDK's object as it came over the wire; what the SDK did not understand it hands over as it is."""
    return answer.model_dump(warnings=False) if hasattr(answer, "model_dump") else answer
