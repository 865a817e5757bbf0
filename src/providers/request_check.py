"""Checks a request against its model's capabilities before it is sent. Pure."""

from typing import Final

from ..protocol.error_codes import InvalidArgumentsError
from .completion import CompletionRequest, ImagePart, Message, WebSearch
from .thinking import check_thinking

MAX_SEARCH_RESULTS: Final = 50
"""The maximum per web search (docs.bigmodel.cn/api-reference, 网络搜索)."""


def check(request: CompletionRequest) -> None:
    """Checks that the model supports the request.

    Raises:
        InvalidArgumentsError: the model does not; the error names the model and, in ``details.fields``, the argument.
    """
    model = request.model
    if model.kind == "embedding":
        raise refused("model", f"{model.id} makes embeddings, not completions; `listmodels` shows models that do.")
    if not request.messages and not request.files:
        raise refused("messages", "The request has no message.")
    if "image" not in model.inputs and _has_image(request):
        raise refused("images", f"{model.id} does not accept images; `listmodels` shows models that do.")
    if request.response_format is not None and model.structured == "none":
        raise refused("response_format", f"{model.id} does not support JSON output; `listmodels` shows models that do.")
    check_thinking(model, request.thinking)
    _check_tools(request)
    _check_numbers(request)


def refused(field: str, message: str) -> InvalidArgumentsError:
    return InvalidArgumentsError(message, details={"fields": {field: message}})


def _check_tools(request: CompletionRequest) -> None:
    model = request.model
    searches = [tool for tool in request.tools if isinstance(tool, WebSearch)]
    if len(searches) < len(request.tools) and not model.tools:
        raise refused("tools", f"{model.id} cannot call tools; `listmodels` shows models that can.")
    if searches and not model.web_search:
        raise refused("web_search", f"{model.id} cannot search the web; `listmodels` shows models that can.")
    if len(searches) > 1:
        raise refused("web_search", "Web search can be given only once.")
    for search in searches:
        check_result_count(search.count)


def check_results(messages: tuple[Message, ...]) -> None:
    """Checks that each tool call has its result. Vendors refuse conversations in which a result is missing.

    Raises:
        InvalidArgumentsError: a call has no result, or a result has no call; the message has the index.
    """
    waiting: list[str] = []
    for index, message in enumerate(messages):
        if message.role == "tool":
            if message.tool_call_id not in waiting:
                raise refused("messages", f"messages[{index}]: no earlier call waits for this result.")
            waiting.remove(message.tool_call_id)
        else:
            _check_answered(waiting, index)
            waiting = [call.id for call in message.tool_calls]
    _check_answered(waiting, len(messages))


def _check_answered(waiting: list[str], index: int) -> None:
    if waiting:
        calls = ", ".join(repr(call_id) for call_id in waiting[:3])
        raise refused("messages", f"messages[{index}]: the results of these calls must come first: {calls}.")


def check_result_count(count: int | None) -> None:
    """Checks the number of search results.

    Raises:
        InvalidArgumentsError: the number is out of range; the message names the range.
    """
    if count is not None and not 0 < count <= MAX_SEARCH_RESULTS:
        raise refused("count", f"A web search returns 1 to {MAX_SEARCH_RESULTS} results, not {count}.")


def _check_numbers(request: CompletionRequest) -> None:
    model = request.model
    if request.temperature is not None:
        if model.fixed_temperature:
            raise refused("temperature", f"{model.id} has a fixed temperature; omit temperature.")
        highest = 2 if model.thinking == "unknown" else 1  # OpenAI's maximum, and the maximum of the catalog's models
        if not 0 <= request.temperature <= highest:
            message = f"{model.id} accepts a temperature from 0 to {highest}, not {request.temperature:g}."
            raise refused("temperature", message)
    if request.max_tokens is not None:
        bound = model.max_output or model.context_window
        if bound is None and request.max_tokens <= 0:
            raise refused("max_tokens", f"max_tokens must be at least 1, not {request.max_tokens}.")
        if bound is not None and not 0 < request.max_tokens <= bound:
            raise refused("max_tokens", f"{model.id} accepts max_tokens from 1 to {bound}, not {request.max_tokens}.")


def _has_image(request: CompletionRequest) -> bool:
    return any(
        isinstance(part, ImagePart)
        for message in request.messages
        if not isinstance(message.content, str)
        for part in message.content
    )
