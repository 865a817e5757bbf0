"""The ASGI app of ``/v1``: OpenAI's API, with a toold token as the API key.

headers ▸ body ▸ request ▸ call ─▶ JSON, or the events of a stream
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import structlog
from starlette.types import Receive, Scope, Send

from ....protocol.authorization import Authenticate, Authorization
from ....protocol.error_codes import CallError, ErrorCode, ToolError
from ....protocol.frames import MAX_REQUEST_ID_CHARS
from ....protocol.name_suggestions import close_names, did_you_mean
from ....protocol.openai.model_entry import ModelEntry, model_answer, model_list
from ....protocol.openai.openai_body import decode_body, decode_long_body
from ....protocol.openai.openai_chat_request import parse_chat
from ....protocol.openai.openai_embeddings import parse_embeddings
from ....protocol.openai.openai_error import OpenAIProblem, invalid, problem_of, refusal_problem
from ....protocol.user_credential import USER_HEADER
from ....serving import COMPLETE, PEER, HttpPeer
from ...dispatch import Router
from ...observability.logging_setup import shown_content
from ..http_client import client_of, toolset_with
from ..http_intake import HttpIntake
from ..http_io import read_headers, send_json
from ..request_guard import RequestRefused, authorize, refuse_content
from .openai_calls import AnswerForms, OpenAICall, OpenAICalls, OpenAIPost
from .openai_exchange import embeddings_form, stream_forms, whole_form

PREFIX: Final = "/v1/"

_CHAT: Final = "/v1/chat/completions"
_EMBEDDINGS: Final = "/v1/embeddings"
_MODELS: Final = "/v1/models"
_RESPONSES: Final = "/v1/responses"
"""The API that recent versions of OpenAI's packages show first; it is not served."""
_METHODS: Final[Mapping[str, str]] = {_CHAT: "POST", _EMBEDDINGS: "POST", _MODELS: "GET"}
_KEY: Final = "idempotency-key"
_HEADERS: Final = {
    name.encode(): name
    for name in ("authorization", "content-encoding", "content-type", "host", "origin", "user-agent", USER_HEADER, _KEY)
}
"""The headers that are read, in lower case."""

_log = structlog.get_logger("toold.openai")


class OpenAIServer:
    """Serves the paths below ``PREFIX``."""

    def __init__(
        self,
        router: Router,
        intake: HttpIntake,
        *,
        origins: tuple[str, ...],
        authenticate: Authenticate,
        models: Callable[[], Sequence[ModelEntry]],
        find_model: Callable[[str], ModelEntry],
    ) -> None:
        """``models`` returns the models that can be requested now; ``find_model`` returns one by any of its names, or
        raises a ``CallError``.
        """
        self._router = router
        self._intake = intake
        self._origins = origins
        self._authenticate = authenticate
        self._models = models
        self._find_model = find_model
        self._calls = OpenAICalls(router)

    def __repr__(self) -> str:
        return f"<OpenAIServer {self._intake!r}>"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = read_headers(scope, _HEADERS)
        access = await authorize(
            headers, scheme=scope["scheme"], authenticate=self._authenticate, origins=self._origins
        )
        whole = COMPLETE in scope.get("extensions", ())
        if isinstance(access, RequestRefused):
            await _refuse(send, access, close=whole)
            return
        peer: HttpPeer = scope["state"][PEER]
        excess = self._intake.refuse_excess(peer) or _wrong_route(scope["method"], scope["path"], headers)
        if isinstance(excess, RequestRefused):
            await _refuse(send, excess, close=whole)
            return
        if scope["path"].startswith(_MODELS):
            await self._answer_models(scope["path"], send)
            return
        async with self._intake.serving(partial(_refuse, send)):
            body, size = await self._intake.receive(
                receive, access.principal.name, decode_body, decode_long_body, whole=whole
            )
            parse = _chat_call if scope["path"] == _CHAT else _embeddings_call
            call = body if isinstance(body, OpenAIProblem) else parse(body)
            if isinstance(call, OpenAIProblem):
                await _send_problem(send, call)
            else:
                await self._run(access, headers, call, size, receive, send)

    async def _run(
        self,
        access: Authorization,
        headers: Mapping[str, str],
        call: OpenAICall,
        size: int,
        receive: Receive,
        send: Send,
    ) -> None:
        toolset, key = toolset_with(self._router.catalog, access, call.tool), headers.get(_KEY)
        if toolset is None:
            await _send_problem(send, _no_toolset(call.tool))
        elif key is not None and not 0 < len(key) <= MAX_REQUEST_ID_CHARS:
            message = f"Idempotency-Key must have 1 to {MAX_REQUEST_ID_CHARS} characters."
            await _send_problem(send, invalid(None, message))
        else:
            post = OpenAIPost(access, toolset, client_of(headers, "openai"), key, receive, send)
            await self._calls.run(post, call, size)

    async def _answer_models(self, path: str, send: Send) -> None:
        name = path[len(_MODELS) + 1 :]
        if not name:
            await send_json(send, model_list(self._models()))
            return
        try:
            await send_json(send, model_answer(self._find_model(name)))
        except CallError as error:
            await _send_problem(send, problem_of(error.to_tool_error()))


def _chat_call(body: Any) -> OpenAICall | OpenAIProblem:
    request = parse_chat(body)
    if isinstance(request, OpenAIProblem):
        return request
    forms = AnswerForms(whole_form)
    if request.stream:
        stream = partial(stream_forms, include_usage=request.include_usage)
        forms = AnswerForms(lambda identity: stream(identity)[0], lambda identity: stream(identity)[1])
    return OpenAICall("complete", request.arguments, request.model, forms)


def _embeddings_call(body: Any) -> OpenAICall | OpenAIProblem:
    request = parse_embeddings(body)
    if isinstance(request, OpenAIProblem):
        return request
    return OpenAICall("embed", request.arguments, request.model, AnswerForms(embeddings_form))


def _no_toolset(tool: str) -> OpenAIProblem:
    message = f"No toolset of this token has the tool {tool}, which this path calls; ask the operator."
    return problem_of(ToolError(ErrorCode.TOOL_NOT_FOUND, message, "no", retryable=False))


def _wrong_route(method: str, path: str, headers: Mapping[str, str]) -> RequestRefused | None:
    """Refuses a path that does not exist, a wrong method, and a body that is not JSON."""
    route = _MODELS if path.startswith(f"{_MODELS}/") else path
    allowed = _METHODS.get(route)
    if path == _RESPONSES or path.startswith(f"{_RESPONSES}/"):
        return RequestRefused(404, f"{_RESPONSES} (OpenAI's Responses API) is not supported; use {_CHAT}.")
    if allowed is None:
        close = close_names(path, _METHODS, n=1)
        served = ", ".join(_METHODS)
        return RequestRefused(404, f"{path[:100]} does not exist; {did_you_mean(close) or f'there are {served}.'}")
    if method != allowed:
        return RequestRefused(405, f"{route} accepts {allowed} only.", (("allow", allowed),))
    return refuse_content(headers) if method == "POST" else None


async def _refuse(send: Send, refused: RequestRefused, *, close: bool = False) -> None:
    """Sends an error instead of serving the request; closes the connection if the rest of the body stays unread."""
    problem = refusal_problem(refused.status, refused.message, refused.headers)
    await _send_problem(send, problem, [(b"connection", b"close")] if close else [])


async def _send_problem(send: Send, problem: OpenAIProblem, headers: Sequence[tuple[bytes, bytes]] = ()) -> None:
    _log.info("request refused", status=problem.status, reason=shown_content(problem.message))
    await send_json(send, problem.encode(), problem.status, [*problem.response_headers(), *headers])
