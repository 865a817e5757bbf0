"""The transport of vendors with OpenAI's API: ``AsyncOpenAI``, the asynchronous client of the ``openai`` SDK."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib import import_module
from importlib.metadata import version
from typing import Any, Final

from ..protocol.json_text import InvalidJsonError
from .call_connections import CallConnections
from .completion import OnDelta
from .http_transport import HttpTransport
from .request_body import Body
from .transport_loader import TransportChoice, TransportLoader
from .vendor_info import VendorAccess, VendorInfo
from .vendor_transport import (
    CONNECT_TIMEOUT_S,
    ApiAnswer,
    ApiRequest,
    AttemptPlan,
    ReadChunk,
    TransportErrors,
    deliver,
    is_event_stream,
    sdk_arguments,
)

_COMPLETIONS: Final = "/chat/completions"


def openai_loader(vendor: VendorInfo, access: VendorAccess, sdk: str) -> TransportLoader:
    """Returns the transports of a vendor with OpenAI's API. ``auto`` uses the openai SDK if it can be imported, else
    plain HTTP.
    """
    choices = {
        "openai": TransportChoice("openai", "openai", OpenAITransport),
        "http": TransportChoice("httpx", "httpx", HttpTransport),
    }
    return TransportLoader(vendor, access, list(choices.values()) if sdk == "auto" else [choices[sdk]])


class OpenAITransport:
    """``AsyncOpenAI`` with the vendor's base URL. Construct it in a thread: it imports the SDK."""

    def __init__(self, vendor: VendorInfo, access: VendorAccess) -> None:
        self._openai: Any = import_module("openai")
        self.name = f"openai {version('openai')}"
        self._binary = self._openai.HttpxBinaryResponseContent  # raw bytes for any content type
        self._access = access
        self._errors = TransportErrors(vendor, access)
        self._connections: CallConnections[Any] = CallConnections(access, self._openai.DefaultAsyncHttpxClient)

    async def ask(self, body: Body, attempts: AttemptPlan) -> tuple[Any, Mapping[str, str]]:
        # Not ``chat.completions.create``, which spends milliseconds on converting each message and tool by its type.
        async with self._client(attempts) as client:
            answer = await client.post(_COMPLETIONS, cast_to=self._binary, body=body)
            headers = answer.response.headers
            return self._errors.document(answer.content, headers), dict(headers)

    async def stream(self, body: Body, attempts: AttemptPlan, read: ReadChunk, on_delta: OnDelta) -> Mapping[str, str]:
        chunk_type = self._openai.types.chat.ChatCompletionChunk
        async with (
            self._client(attempts) as client,
            await client.post(
                _COMPLETIONS,
                body=body,
                cast_to=chunk_type,
                stream=True,
                stream_cls=self._openai.AsyncStream[chunk_type],
            ) as chunks,
        ):
            headers = dict(chunks.response.headers)
            if not is_event_stream(headers):
                deliver(read, self._errors.document(await chunks.response.aread(), headers), on_delta)
                return headers
            async for chunk in chunks:
                # Vendors send types that differ from the SDK's declarations, such as a list as content.
                deliver(read, chunk.to_dict(warnings=False), on_delta)
            return headers

    async def send(self, request: ApiRequest, attempts: AttemptPlan) -> ApiAnswer:
        async with self._client(attempts) as client:
            method = getattr(client, request.method.lower())
            answer = await method(request.path, cast_to=self._binary, **sdk_arguments(request))
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
                    # The SDK would read these from the environment, where they are meant for OpenAI.
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
