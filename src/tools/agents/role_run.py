"""Runs one role: turns with tool calls, until its model answers.

The messages of a turn depend only on the snapshot and on the results of earlier child calls. So a resumed run makes the
same turns under the same names, and the journal answers those that ended.
"""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from ...protocol.error_codes import ContextLengthExceededError, ProviderError
from ..conversation import Turn
from ..json_schema import JsonSchema
from ..orchestration_context import OrchestrationContext
from .agent_definition import Role
from .agent_messages import TurnAnswer, answer_row, user_row
from .agent_run import AgentRun, RoleAnswer, answer_of
from .role_calls import RoleCalls
from .role_compaction import RoleCompaction
from .role_dialogue import Dialogue, Exchange, begin_dialogue
from .run_totals import RunTotals
from .structured_answer import AnswerMismatchError, read_answer, schema_instruction
from .turn_attempts import make_turn

_LAST_TURN: Final = "You have no turns left and can call no more tools. Answer now with what you have."


async def run_role(
    run: AgentRun,
    role: Role,
    prompt: str,
    context: OrchestrationContext,
    history: tuple[Turn, ...] = (),
) -> RoleAnswer:
    """Returns the role's answer to ``prompt``, and streams the text of its model.

    Raises:
        CallError: the model failed, or the answer does not match the role's schema.
        CallPausedError: a person must approve a call or answer a question first.
    """
    return await _RoleRun(run, role, context).answer(prompt, history)


class _RoleRun:
    def __init__(self, run: AgentRun, role: Role, context: OrchestrationContext) -> None:
        self._run = run
        self._role = role
        self._context = context
        self._schema = None if role.answer_schema is None else JsonSchema(role.answer_schema)
        self._calls = RoleCalls(run, role, context)
        self._compaction = RoleCompaction(run, role, context)
        self._turns = 0

    async def answer(self, prompt: str, history: Iterable[Turn]) -> RoleAnswer:
        offered = self._run.offered(self._role)
        instructions = offered.prompt
        if self._schema is not None:
            instructions = f"{instructions}\n\n{schema_instruction(self._schema.schema)}"
        dialogue = begin_dialogue(instructions, history, prompt, offered.images)
        corrections = self._role.answer_retries
        while True:
            dialogue = await self._compaction.fitting(dialogue)
            last = self._turns >= self._role.max_turns
            try:
                answer = await self._turn(dialogue, last=last)
            except ContextLengthExceededError:
                shorter = await self._compaction.after_refusal(dialogue)
                if shorter is None:
                    raise
                dialogue = shorter
                continue
            if answer.calls and not last:
                exchange = await self._calls.make(answer, self._turns)
                if self._calls.transfer is not None:
                    return await self._transferred(*self._calls.transfer)
                dialogue = dialogue.with_exchange(exchange)
                continue
            if not answer.text.strip():
                why = f"{answer.model} answered without text (finish reason {answer.finish_reason})"
                message = f"role {self._role.name}: {why}; ask again, or raise max_tokens."
                raise ProviderError(message, executed="yes", summary="answer without text")
            try:
                data = msgspec.UNSET if self._schema is None else read_answer(answer.text, self._schema)
            except AnswerMismatchError as error:
                if last or not corrections:
                    message = f"role {self._role.name}: its answer does not match answer_schema: {error}"
                    raise ProviderError(message, executed="yes", summary="answer_schema not matched") from error
                corrections -= 1
                rows = (answer_row(_without_calls(answer)), user_row(error.correction))
                dialogue = dialogue.with_exchange(Exchange(rows))
                continue
            stopped_by = "max_turns" if last else "max_tokens" if answer.finish_reason == "length" else ""
            return self._answered(answer.text, data, stopped_by=stopped_by)

    async def _turn(self, dialogue: Dialogue, *, last: bool) -> TurnAnswer:
        self._turns += 1
        context, role = self._context, self._role
        context.progress(f"{role.name}: turn {self._turns}")
        rows = dialogue.rows
        arguments: dict[str, Any] = {"agent": self._run.agent.name, "role": role.name, "messages": rows}
        if last:
            rows.append(user_row(_LAST_TURN))
            arguments["last"] = True
        answer = await make_turn(self._run, role, arguments, f"t{self._turns}", context)
        self._calls.note_turn(answer, f"t{self._turns}")
        return answer

    async def _transferred(self, spoke: Role, task: str) -> RoleAnswer:
        result = await self._run.role_call(spoke, task, spoke.name, self._context, with_history=True, stream=True)
        answer = answer_of(result, spoke, spoke.name)
        answer = msgspec.structs.replace(answer, answered_by=answer.answered_by or spoke.name)
        return self._with_own(answer)

    def _answered(self, text: str, data: Any, *, stopped_by: str) -> RoleAnswer:
        return self._with_own(RoleAnswer(text, data, stopped_by=stopped_by, exited=self._calls.exited))

    def _with_own(self, answer: RoleAnswer) -> RoleAnswer:
        """The answer with the turns and calls of this role and of the roles to which it delegated."""
        own = RunTotals(self._turns, summaries=self._compaction.summaries, warnings=self._compaction.warnings)
        answer = answer.with_totals(own.with_later((self._calls.totals, answer.totals)))
        return msgspec.structs.replace(
            answer, of_conversation=answer.of_conversation or self._compaction.of_conversation
        )


def _without_calls(answer: TurnAnswer) -> TurnAnswer:
    return msgspec.structs.replace(answer, calls=())
