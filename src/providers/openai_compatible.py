"""Any vendor with an OpenAI-compatible API, using the ``openai`` SDK or plain HTTP."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from . import request_body
from .completion import CompletionRequest, JsonFormat, Message, TextPart, WebSearch
from .openai_transport import openai_loader
from .request_body import Body
from .request_check import refused
from .vendor_dialect import COMPATIBLE, Dialect
from .vendor_info import VendorAccess, VendorInfo
from .vendor_provider import VendorProvider

_JSON_INSTRUCTION: Final = "Answer with one JSON object, and nothing else."
"""OpenAI and others reject JSON output if no message mentions JSON (platform.openai.com/docs/guides/structured-outputs,
JSON mode)."""


def build_compatible(
    vendor: VendorInfo, access: VendorAccess, sdk: str = "auto", *, dialect: Dialect = COMPATIBLE
) -> VendorProvider:
    """Returns the vendor's provider. ``auto`` uses the openai SDK if it can be imported, else plain HTTP."""
    loader = openai_loader(vendor, access, sdk)
    return VendorProvider(loader, partial(compatible_body, dialect=dialect), dialect=dialect)


def compatible_body(request: CompletionRequest, *, stream: bool, dialect: Dialect = COMPATIBLE) -> Body:
    """Returns the request body in the vendor's dialect of OpenAI's format
    (platform.openai.com/docs/api-reference/chat/create).

    Raises:
        InvalidArgumentsError: the request has web search, which is specific to a vendor.
    """
    body = request_body.body(
        replace(request, messages=_mentioning_json(request)),
        stream=stream,
        image_url=str,
        web_search=_web_search,
        thinking=dialect.thinking,
        reasoning_field=dialect.reasoning_field,
        extra_content=dialect.extra_content,
    )
    if request.response_format is not None and (request.model.structured == "schema" or not dialect.json_object):
        body["response_format"] = _json_schema(request.response_format, dialect)
    if request.tool_choice is not None and request.tools:
        body["tool_choice"] = request.tool_choice
    if request.max_tokens is not None:
        body[dialect.limit_field] = request.max_tokens
    if request.cache_key is not None and dialect.cache_field is not None:
        body[dialect.cache_field] = request.cache_key
    if stream and dialect.stream_usage:
        body["stream_options"] = {"include_usage": True}
    return body


def is_strict(schema: Any) -> bool:
    """Whether OpenAI accepts the schema as strict: each object requires all its properties, and allows no others
    (platform.openai.com/docs/guides/structured-outputs, Supported schemas).
    """
    if isinstance(schema, list):
        return all(map(is_strict, schema))
    if not isinstance(schema, Mapping):
        return True
    properties = schema.get("properties")
    if schema.get("type") == "object" or properties is not None:
        names = set(properties) if isinstance(properties, Mapping) else set()
        if schema.get("additionalProperties") is not False or set(schema.get("required") or ()) != names:
            return False
    return all(map(is_strict, schema.values()))


def _json_schema(response_format: JsonFormat, dialect: Dialect) -> Body:
    schema = response_format.schema
    if schema is None:
        if dialect.json_object:
            return {"type": "json_object"}
        schema = {"type": "object"}
    strict = is_strict(schema) if response_format.strict is None else response_format.strict
    return {"type": "json_schema", "json_schema": {"name": response_format.name, "strict": strict, "schema": schema}}


def _mentioning_json(request: CompletionRequest) -> tuple[Message, ...]:
    """Returns the messages, with an instruction if JSON without a schema is requested and no message mentions JSON."""
    response_format = request.response_format
    if response_format is None or response_format.schema is not None:
        return request.messages
    texts = (
        part.text
        for message in request.messages
        for part in ([TextPart(message.content)] if isinstance(message.content, str) else message.content)
        if isinstance(part, TextPart)
    )
    if any("json" in text.lower() for text in texts):
        return request.messages
    return request_body.with_instruction(request.messages, _JSON_INSTRUCTION)


def _web_search(_: WebSearch) -> dict[str, Any]:
    raise refused("web_search", "Only Kimi and GLM search the web; name one of their models.")
