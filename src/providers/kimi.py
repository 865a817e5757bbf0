"""Kimi, on the asynchronous client of the ``openai`` SDK, which the vendor documents as its own."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from importlib.metadata import version
from typing import Any

from ..protocol.errors import InvalidArgumentsError
from . import question
from .completion import CompletionRequest, OnDelta, Provider
from .connections import Connections
from .http import HttpRoad
from .provider import RoadChoice, VendorProvider
from .question import Body
from .road import CONNECT_TIMEOUT_S, Attempts, Errors, ReadChunk
from .vendor import KIMI, Access, KimiSdk, Vendor


def build_kimi(access: Access, *, sdk: KimiSdk = "auto") -> Provider:
    """Kimi's provider. ``auto`` takes the openai SDK where it can be imported, and plain HTTP where not."""
    choices = {"openai": RoadChoice("openai", "openai", OpenAIRoad), "http": RoadChoice("httpx", "httpx", HttpRoad)}
    return VendorProvider(KIMI, access, kimi_body, list(choices.values()) if sdk == "auto" else [choices[sdk]])


def kimi_body(request: CompletionRequest, *, stream: bool) -> Body:
    """The question as Moonshot takes it (platform.moonshot.ai/docs/api/chat)."""
    body = question.body(request, stream=stream, image_url=_image_url)
    if request.max_tokens is not None:
        body["max_completion_tokens"] = request.max_tokens
    if stream:
        body["stream_options"] = {"include_usage": True}
    return body


def _image_url(url: str) -> str:
    if not url.startswith("data:"):
        message = "Kimi takes images as data: URLs alone; attach the image itself instead of its address."
        raise InvalidArgumentsError(message, details={"fields": {"images": message}})
    return url


class OpenAIRoad:
    """``AsyncOpenAI`` with another base URL. Construct it in a thread: it imports the SDK."""

    def __init__(self, vendor: Vendor, access: Access) -> None:
        self._openai: Any = import_module("openai")
        self.name = f"openai {version('openai')}"
        self._access = access
        self._errors = Errors(vendor, access)
        self._connections: Connections[Any] = Connections(access, self._openai.DefaultAsyncHttpxClient)

    async def ask(self, body: Body, attempts: Attempts) -> Any:
        async with self._completions(attempts) as completions:
            answer = await completions.with_raw_response.create(**_arguments(body))
            return json.loads(answer.http_response.text)

    async def stream(self, body: Body, attempts: Attempts, read: ReadChunk, on_delta: OnDelta) -> None:
        async with (
            self._completions(attempts) as completions,
            await completions.create(**_arguments(body)) as chunks,
        ):
            async for chunk in chunks:
                delta = read(chunk.to_dict())
                if delta is not None:
                    on_delta(delta)

    @asynccontextmanager
    async def _completions(self, attempts: Attempts) -> AsyncIterator[Any]:
        """The SDK's completions for one call, with its errors mapped."""
        openai = self._openai
        try:
            async with self._connections.lend() as http:
                yield openai.AsyncOpenAI(
                    api_key=self._access.api_key.get_secret_value(),
                    base_url=self._access.base_url,
                    timeout=openai.Timeout(attempts.timeout_s, connect=min(CONNECT_TIMEOUT_S, attempts.timeout_s)),
                    max_retries=attempts.retries,
                    http_client=http,
                    # The SDK takes these from the environment, where they are meant for another vendor.
                    default_headers={"OpenAI-Organization": openai.omit, "OpenAI-Project": openai.omit},
                ).chat.completions
        except openai.APITimeoutError as error:
            raise self._errors.timed_out(error, attempts) from error
        except openai.APIConnectionError as error:
            raise self._errors.unreachable(error) from error
        except openai.APIStatusError as error:
            raise self._errors.refused(error.status_code, error.response.text, error.response.headers) from error
        except openai.APIError as error:
            raise self._errors.broken_stream(error.body) from error
        except json.JSONDecodeError as error:
            raise self._errors.not_json() from error

    async def close(self) -> None:
        await self._connections.aclose()


def _arguments(body: Body) -> dict[str, Any]:
    """The body as the SDK's arguments: what OpenAI has no word for goes into ``extra_body``."""
    known = {key: value for key, value in body.items() if key != "thinking"}
    return {**known, "extra_body": {"thinking": body["thinking"]}} if "thinking" in body else known
