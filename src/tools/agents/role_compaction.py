"""Keeps the messages of a role within its model's window. First, long results are shortened; then a summary replaces
the oldest exchanges.

Only exchanges that have ended are shortened, before a turn. The decisions depend only on the snapshot and on earlier
child calls, and each step is a child call, so a resumed run does the same.
"""

import asyncio
from dataclasses import replace
from functools import cached_property
from typing import Final

import msgspec

from ...protocol.error_codes import CallError, ContextLengthExceededError, error_from_wire
from ..completions import estimate_tokens
from ..orchestration_context import OrchestrationContext
from .agent_definition import Role
from .agent_messages import Row, TurnAnswer
from .agent_run import AgentRun, ConversationSummary
from .result_handles import can_read, handle_of
from .role_dialogue import Dialogue, Exchange
from .role_summary import summary_arguments, summary_tokens
from .turn_attempts import with_attempts
from .turn_results import shortened

KEPT_RESULT_CHARS: Final = 2000
"""The length to which long results of older turns are shortened: some 500 tokens."""
_TARGET: Final = 0.6
"""Messages are shortened to this share of the limit, so that they do not reach it again a turn later."""
MAX_FAILED_SUMMARIES: Final = 2
"""After this many failures in one run, a role continues without summaries, as long as its messages fit."""
MAX_REFUSALS: Final = 3
"""The number of times that one role shortens its messages because the vendor refused them as too long."""


class RoleCompaction:
    """Shortens the messages of one role's run."""

    def __init__(self, run: AgentRun, role: Role, context: OrchestrationContext) -> None:
        offered = run.offered(role)
        settings = role.compaction or run.agent.compaction
        limits = [int(offered.window * settings.threshold), offered.room] if offered.window else []
        if settings.above_tokens is not None:
            limits.append(settings.above_tokens)
        self._run = run
        self._role = role
        self._context = context
        self._offered = offered
        self._enabled = settings.enabled
        self._keep = settings.keep_turns
        self._limit = min(limits) if limits else None
        self._functions = msgspec.json.encode(offered.functions).decode()
        self._failures = 0
        self._refusals = 0
        self.summaries = 0
        self.warnings: tuple[str, ...] = ()
        self.of_conversation: ConversationSummary | None = None
        """The summary of the conversation's messages, for the next message."""

    @cached_property
    def _functions_tokens(self) -> int:
        return estimate_tokens((self._functions,))

    async def fitting(self, dialogue: Dialogue) -> Dialogue:
        """The messages of the next turn, shortened if they exceed the limit.

        Raises:
            ContextLengthExceededError: the messages exceed the window and cannot be shortened.
        """
        limit = self._limit
        if not self._enabled or limit is None or dialogue.chars + len(self._functions) <= limit:
            return dialogue
        if await asyncio.to_thread(self._tokens, dialogue) <= limit:
            return dialogue
        return await self._shorten(dialogue, limit, refused=False)

    async def after_refusal(self, dialogue: Dialogue) -> Dialogue | None:
        """Shortened messages after the vendor refused them as too long; None if they cannot be shortened.

        Raises:
            ContextLengthExceededError: as raised by ``fitting``.
        """
        self._refusals += 1
        if not self._enabled or self._refusals > MAX_REFUSALS:
            return None
        tokens = await asyncio.to_thread(self._tokens, dialogue)
        shorter = await self._shorten(dialogue, min(tokens, self._limit or tokens), refused=True)
        return None if shorter is dialogue else shorter

    async def _shorten(self, dialogue: Dialogue, limit: int, *, refused: bool) -> Dialogue:
        target = int(limit * _TARGET) - self._functions_tokens
        reserved = dialogue.tokens_around + summary_tokens(self._offered.window)
        count = dialogue.older(self._keep, target - reserved)
        if not count:
            return self._unchanged(dialogue, refused=refused)
        with_handles = dialogue.with_oldest([await self._with_handles(each) for each in dialogue.oldest(count)])
        if with_handles.tokens <= target:
            return with_handles
        return await self._summarized(with_handles, count, refused=refused)

    def _unchanged(self, dialogue: Dialogue, *, refused: bool) -> Dialogue:
        """Returns the same messages, because nothing can be shortened. Raises if they exceed the window, or the vendor
        refused them.
        """
        if not refused and self._exceeds_window(dialogue):
            raise self._too_long(
                dialogue, "its instructions, functions, the request and the last turn alone are too long"
            )
        return dialogue

    async def _with_handles(self, exchange: Exchange) -> Exchange:
        rows: list[Row] = []
        results = 0
        for row in exchange.rows:
            if row["role"] != "tool":
                rows.append(row)
                continue
            index, results = results, results + 1
            text: str = row["content"]
            if len(text) <= KEPT_RESULT_CHARS:
                rows.append(row)
                continue
            handle = exchange.handles[index] if index < len(exchange.handles) else ""
            if not handle and can_read(self._offered, row["tool_name"]):
                handle = await handle_of(text, f"{exchange.name}.{index}", self._context)
            rows.append({**row, "content": shortened(text, KEPT_RESULT_CHARS, handle)})
        return replace(exchange, rows=tuple(rows))

    async def _summarized(self, dialogue: Dialogue, count: int, *, refused: bool) -> Dialogue:
        if self._failures >= MAX_FAILED_SUMMARIES:
            return self._without_summary(dialogue, count, "earlier summaries failed", refused=refused)
        transcript = dialogue.transcript(count)
        try:
            text = await self._summary(transcript)
        except CallError as error:
            self._failures += 1
            return self._without_summary(dialogue, count, error.message.rstrip("."), refused=refused)
        shorter = dialogue.summarized(count, text)
        if shorter.tokens >= dialogue.tokens:
            self._failures += 1
            why = "the summary is not shorter than what it replaces"
            return self._without_summary(dialogue, count, why, refused=refused)
        self.summaries += 1
        self._note(dialogue, count, shorter)
        return shorter

    async def _summary(self, transcript: str) -> str:
        """The model's summary.

        Raises:
            CallError: the model failed, or did not write a summary.
        """
        room = self._offered.room - summary_tokens(self._offered.window)
        if self._offered.window and (tokens := estimate_tokens((transcript,))) > room:
            transcript = shortened(transcript, max(KEPT_RESULT_CHARS, len(transcript) * room // tokens))
        self._context.progress(f"{self._role.name}: summarizing the conversation")
        arguments = summary_arguments(self._run.agent.name, self._role.name, transcript)
        name = f"summary.{self.summaries + self._failures + 1}"
        result = await with_attempts(
            lambda attempt: self._run.summary(self._role, arguments, attempt, self._context), name, self._context
        )
        if result.error is not None:
            raise error_from_wire(result.error)
        answer = msgspec.convert(result.structured, TurnAnswer)
        if not answer.text.strip() or answer.finish_reason == "length":
            how = "is empty" if not answer.text.strip() else "was cut off at its token limit"
            raise ContextLengthExceededError(f"The summary of {answer.model} {how}.")
        return answer.text.strip()

    def _without_summary(self, dialogue: Dialogue, count: int, why: str, *, refused: bool) -> Dialogue:
        """The messages if there is no summary. They stay the same if they fit; otherwise, earlier messages of the
        conversation are omitted. Turns of this run are never omitted, because the model would then repeat their work.
        """
        if not refused and not self._exceeds_window(dialogue):
            self._warn(f"the messages were not summarized: {why}")
            return dialogue
        left_out = min(count, len(dialogue.earlier))
        if left_out:
            shorter = dialogue.summarized(left_out, dialogue.summary or "They were not summarized.")
            if not self._exceeds_window(shorter):
                self._warn(
                    f"earlier messages of the conversation were omitted, because they were not summarized: {why}"
                )
                return shorter
        raise self._too_long(dialogue, f"they could not be summarized: {why}")

    def _too_long(self, dialogue: Dialogue, why: str) -> ContextLengthExceededError:
        tokens, model = self._tokens(dialogue), self._offered.model
        window = (
            f"the window of {model} has {self._offered.window:,}" if self._offered.window else f"{model} refused them"
        )
        return ContextLengthExceededError(
            f"Role {self._role.name}: its messages have about {tokens:,} tokens, and {window}; {why}. Give the agent "
            "less to do or a model with a larger window, or begin a new conversation.",
            executed="yes",
        )

    def _note(self, before: Dialogue, count: int, after: Dialogue) -> None:
        """Stores the summary for the next message, if it covers only the conversation and no turn of this run."""
        if after.summary and not after.work:
            self.of_conversation = ConversationSummary(after.summary, before.earlier[count - 1].until)

    def _tokens(self, dialogue: Dialogue) -> int:
        return dialogue.tokens + self._functions_tokens

    def _exceeds_window(self, dialogue: Dialogue) -> bool:
        return bool(self._offered.window) and self._tokens(dialogue) > self._offered.window

    def _warn(self, warning: str) -> None:
        self.warnings = tuple(dict.fromkeys((*self.warnings, f"role {self._role.name}: {warning}")))
