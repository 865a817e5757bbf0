"""Questions that a server asks on behalf of the call that it runs. Does not import the MCP SDK."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Literal

from ...protocol.error_codes import CallError
from ...protocol.name_suggestions import as_sentence
from ...protocol.questions.client_question import (
    LIST_ROOTS,
    SAMPLE,
    QuestionRefusedError,
    declared_capabilities,
    known_kinds,
    read_question,
)
from ...protocol.questions.question_table import MAX_OF_CALL
from ...protocol.tool_call import Json
from ...tools import ToolContext
from .daemon_sampling import sampled

Sampling = Literal["client", "daemon", "off"]
"""The party that answers a server's requests for completions."""

_MAX_REFUSALS: Final = 3
"""The maximum number of refusals that the call's error names."""


class CallQuestions:
    """The questions of one call."""

    def __init__(
        self,
        source: str,
        sampling: Sampling,
        context: ToolContext,
        redact: Callable[[Any], Any],
        sampling_budget: Mapping[str, float] | None = None,
    ) -> None:
        """``redact`` removes the source's secrets, which a hostile server might show to its callers. The daily
        ``sampling_budget`` limits completions by the daemon.
        """
        self._source = source
        self._sampling = sampling
        self._sampling_budget = sampling_budget or {}
        self._sampled = 0
        self._context = context
        self._redact = redact
        self._refusals: list[str] = []

    @property
    def client_call(self) -> str:
        """The id of the client's call; this call may be a child of it."""
        return self._context.call_id.partition("/")[0]

    @property
    def capabilities(self) -> dict[str, Any]:
        """The questions that the client of the call, or the daemon in its place, answers, as MCP capabilities."""
        kinds = {*known_kinds(self._context.declared_kinds), "roots"}
        if self._sampling != "client":
            kinds -= {"sampling", "sampling_tools"}
        if self._sampling == "daemon":
            kinds.add("sampling")
        return declared_capabilities(known_kinds(kinds))

    def hide(self, redact: Callable[[Any], Any]) -> None:
        """Replaces the function that removes secrets."""
        self._redact = redact

    @contextmanager
    def named_in_error(self) -> Iterator[None]:
        """Adds to an error why the server's questions were not answered, because this is probably the cause."""
        try:
            yield
        except CallError as error:
            missing = [refusal for refusal in dict.fromkeys(self._refusals) if refusal not in error.message]
            error.message = " ".join((as_sentence(error.message), *missing)) if missing else error.message
            raise

    async def ask(self, method: str, params: Mapping[str, Any], name: str = "") -> dict[str, Json]:
        """Asks the client of the call. For a client that does not list roots, returns the directories that it may read.

        Raises:
            QuestionRefusedError: there is no answer.
        """
        try:
            question = read_question(method, self._redact(dict(params)), self._source)
            if method == SAMPLE and self._sampling == "off":
                raise QuestionRefusedError(  # noqa: TRY301 - recorded like the others
                    f'{self._source} asked for a completion; sampling = "off" in [sources.{self._source}] forbids it.'
                )
            if method == SAMPLE and self._sampling == "daemon":
                if self._sampled >= MAX_OF_CALL:
                    raise QuestionRefusedError(  # noqa: TRY301 - as above
                        f"The call has asked for {MAX_OF_CALL} completions, the limit."
                    )
                self._sampled += 1
                return await sampled(question, self._context, self._sampling_budget, self._sampled)
            if method == LIST_ROOTS and "roots" not in self._context.answered_kinds:
                return {"roots": [{"uri": root.as_uri()} for root in await self._context.files.listed_roots()]}
            return await self._context.ask_client(question, name=name)
        except QuestionRefusedError as refused:
            if len(self._refusals) < _MAX_REFUSALS:
                self._refusals.append(refused.message)
            raise
