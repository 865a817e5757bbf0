"""The operator's language for answers (setting ``locale``), as an instruction to the model. Pure."""

from collections.abc import Sequence
from dataclasses import replace

from ...providers import Message, TextPart
from ..model_question import ModelQuestion


def in_language(question: ModelQuestion, locale: str | None) -> ModelQuestion:
    """The question with the instruction to answer in this language; unchanged without one."""
    if locale is None:
        return question
    return replace(question, system="\n\n".join(filter(None, (question.system, _instruction(locale)))))


def messages_in_language(messages: Sequence[Message], locale: str | None) -> tuple[Message, ...]:
    """The conversation with the instruction at the end of its system message, or in one at its beginning."""
    if locale is None:
        return tuple(messages)
    instruction = _instruction(locale)
    if not messages or messages[0].role != "system":
        return (Message("system", instruction), *messages)
    system, *others = messages
    if isinstance(system.content, str):
        return (replace(system, content=f"{system.content}\n\n{instruction}"), *others)
    return (replace(system, content=(*system.content, TextPart(instruction))), *others)


def _instruction(locale: str) -> str:
    return f"Write your answer in this language: {locale}. Keep code, names and JSON keys as they are."
